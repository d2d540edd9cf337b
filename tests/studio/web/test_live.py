"""A page that is open gets what a run writes, from a server as it is started, and is told when the run is gone."""

import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from gametape.studio.web import curves, live
from gametape.studio.web.curves import CurveStore, curve_row

from ..runs import make_run, score
from .site import browser, open_site, served, update_line


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(live, "SECONDS_BETWEEN_LOOKS", 0.02)
    make_run(tmp_path / "run", "rlvr", [score(0, 0.2)])
    with served(open_site(tmp_path)) as address:
        yield address


def events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    kind = ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)


def follow(address: str, after: int, last: str | None = None) -> "httpx._client.StreamContextManager":  # type: ignore[name-defined]
    headers = {"last-event-id": last} if last else {}
    return httpx.stream("GET", f"{address}events?run=run&after={after}", headers=headers, timeout=20)


def test_what_is_written_arrives_and_a_half_line_waits(address: str, tmp_path: Path) -> None:
    log = tmp_path / "run" / "metrics.jsonl"
    series = httpx.get(f"{address}data/series?run=run").json()
    assert (series["offset"], len(series["evals"])) == (log.stat().st_size, 1)
    with follow(address, series["offset"]) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        found = events(answer.iter_lines())
        with log.open("a") as file:
            file.write(update_line(1) + update_line(2)[:20])
        kind, data = next(found)
        assert (kind, [row["step"] for row in data["rows"]], data["rows"][0]["time_learn"]) == ("rows", [1], 0.5)
        with log.open("a") as file:
            file.write(update_line(2)[20:])
        assert [row["step"] for row in next(found)[1]["rows"]] == [2]
    with follow(address, 0, str(data["offset"])) as answer:
        assert [row["step"] for row in next(events(answer.iter_lines()))[1]["rows"]] == [2], "after a lost connection"


def test_a_log_that_was_cut_back_and_a_deleted_run_are_told(address: str, tmp_path: Path) -> None:
    log = tmp_path / "run" / "metrics.jsonl"
    with follow(address, log.stat().st_size) as answer:
        found = events(answer.iter_lines())
        log.write_text("")
        assert next(found)[0] == "anew"
    with follow(address, 0) as answer:
        found = events(answer.iter_lines())
        shutil.rmtree(tmp_path / "run")
        assert [kind for kind, _ in found][-1] == "gone"


def test_a_run_that_has_not_begun_to_write_is_waited_for(address: str, tmp_path: Path) -> None:
    log = tmp_path / "run" / "metrics.jsonl"
    log.unlink()
    with follow(address, 0) as answer:
        found = events(answer.iter_lines())
        log.write_text(update_line(1))
        assert [row["step"] for row in next(found)[1]["rows"]] == [1]


def test_only_so_many_pages_are_followed(tmp_path: Path) -> None:
    make_run(tmp_path / "run", "rlvr", [])
    client = browser(open_site(tmp_path))
    guarded = client.app._app  # type: ignore[attr-defined]
    guarded.state.followers |= set(range(100))
    assert client.get("/events?run=run").status_code == 503


def test_curves_read_only_what_is_new_and_keep_a_bounded_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "MOST_POINTS", 50)
    log, store = tmp_path / "metrics.jsonl", CurveStore()
    log.write_text("".join(update_line(step) for step in range(40)))
    assert [row["step"] for row in store.read(log).updates] == [*range(40)]
    parsed: list[bytes] = []
    monkeypatch.setattr(curves, "curve_row", lambda line: parsed.append(line) or curve_row(line))
    with log.open("a") as file:
        file.writelines(update_line(step) for step in range(40, 500))
    kept = [row["step"] for row in store.read(log).updates]
    assert (len(parsed) <= 4 * 50, len(kept) <= 50) == (True, True)  # what would be dropped is not parsed
    gaps = {later - earlier for earlier, later in pairwise(kept)}
    assert (kept[0], gaps, kept[-1] > 480) == (0, {16}, True)
    log.write_text(update_line(7))
    assert [row["step"] for row in store.read(log).updates] == [7]
