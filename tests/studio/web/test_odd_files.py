"""What is no plain file of a run, or an endless one, holds nobody up, is not followed, and is not read whole."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gametape.studio.web import live
from gametape.studio.web.curves import CurveStore
from gametape.studio.web.export import write_export

from ..runs import make_run, target
from .site import browser, open_site, step_of, update_line, write_tape

SECRET = "what lies outside"
TRAINING_PAGES = (
    "/", "/data/runs", "/run?run=run", "/data/series?run=run", "/rollouts?run=run", "/tasks?run=run",
    "/evaluation?run=run", "/behaviour?run=run", "/calibration?run=run", "/integrity?run=run",
    "/data/tape?run=run&rollout=a.000", "/data/steps?run=run&rollout=a.000",
)  # fmt: skip
GOAL_PAGES = (
    "/",
    "/data/runs",
    "/result?run=goal",
    "/data/tape?run=goal",
    "/data/steps?run=goal",
    "/behaviour?run=goal",
)
TRAINING_FILES = (
    "config.toml",
    "metrics.jsonl",
    "targets.jsonl",
    "behaviour.jsonl",
    "start/tokenizer.json",
    "trajectories/a.000.json",
    "trajectories",
    "start",
)
GOAL_FILES = ("goal.json", "result.json", "patch.diff", "trajectory.json")


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    run, goal = make_run(tmp_path / "run", "rlvr_ttf", [], [target("a.000", 0.5)]), tmp_path / "goal"
    write_tape(run / "trajectories" / "a.000.json", [step_of(1)])
    write_tape(goal / "trajectory.json", [step_of(1)])
    (goal / "goal.json").write_text('{"instruction": "mend it"}')
    return browser(open_site(tmp_path))


def replaced(path: Path, aside: Path) -> Path:
    """The place of a file or a directory, which now lies aside."""
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        path.rename(aside)
    return path


@pytest.mark.parametrize("name", TRAINING_FILES + GOAL_FILES)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "directory"])
def test_a_pipe_or_a_directory_in_place_of_a_file_holds_nobody_up(
    client: TestClient, tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    root = tmp_path / ("goal" if name in GOAL_FILES else "run")
    make(replaced(root / name, tmp_path / "aside"))
    for address in GOAL_PAGES if name in GOAL_FILES else TRAINING_PAGES:
        assert client.get(address).status_code in (200, 404, 422), address
    if root.name == "run":
        write_export(root, tmp_path / "out.html")


@pytest.mark.parametrize("name", TRAINING_FILES + GOAL_FILES)
def test_a_link_in_place_of_a_file_is_not_followed(client: TestClient, tmp_path: Path, name: str) -> None:
    root, outside = tmp_path / ("goal" if name in GOAL_FILES else "run"), tmp_path / "elsewhere"
    if name in ("trajectories", "start"):
        write_tape(outside / "a.000.json", [step_of(1, message=SECRET)])
        (outside / "tokenizer.json").write_text((root / "start" / "tokenizer.json").read_text().replace("pack", SECRET))
    else:
        outside.write_text(_foreign(name))
    replaced(root / name, tmp_path / "aside").symlink_to(outside)
    for address in GOAL_PAGES if name in GOAL_FILES else TRAINING_PAGES:
        answer = client.get(address)
        assert answer.status_code in (200, 404, 422), address
        assert SECRET not in answer.text, address
    if root.name == "run":
        assert SECRET not in write_export(root, tmp_path / "out.html").path.read_text()


def _foreign(name: str) -> str:
    """A file that would be shown in this place if it were no link."""
    match Path(name).name:
        case "config.toml":
            return f'arm = "{SECRET}"\n'
        case "metrics.jsonl":
            return json.dumps({"kind": "alarm", "name": SECRET, "step": 1}) + "\n"
        case "targets.jsonl":
            return json.dumps(target("a.000", 0.5) | {"text": SECRET}) + "\n"
        case "a.000.json" | "trajectory.json":
            return json.dumps({"schema_version": "ATIF-v1.7", "steps": [step_of(1, message=SECRET)]})
        case "goal.json" | "result.json":
            return json.dumps({"instruction": SECRET, "reason": SECRET})
    return SECRET


def test_files_that_are_mostly_holes_are_refused_or_passed_over(client: TestClient, tmp_path: Path) -> None:
    run, goal = tmp_path / "run", tmp_path / "goal"
    (goal / "result.json").write_text("{}")
    journal = run / "trajectories" / "b.000.jsonl"
    journal.write_text(
        json.dumps({"gametape_journal": 2, "trajectory": {"schema_version": "ATIF-v1.7", "steps": []}}) + "\n"
    )
    huge = [
        run / name for name in ("config.toml", "behaviour.jsonl", "start/tokenizer.json", "trajectories/a.000.json")
    ]
    for path in (
        *huge,
        journal,
        goal / "result.json",
        goal / "goal.json",
        goal / "trajectory.json",
        goal / "patch.diff",
    ):
        with path.open("ab") as file:
            file.truncate(1 << 40)
    for address in (*TRAINING_PAGES, *GOAL_PAGES, "/data/tape?run=run&rollout=b.000"):
        assert client.get(address).status_code in (200, 404, 422), address
    assert "too large to be shown" in client.get("/data/tape?run=run&rollout=b.000").text
    write_export(run, tmp_path / "out.html")


def test_curves_go_on_behind_a_line_that_is_too_long(tmp_path: Path) -> None:
    log, store = tmp_path / "metrics.jsonl", CurveStore()
    log.write_text(update_line(1))
    os.truncate(log, 5 << 20)
    assert (store.read(log).offset, len(store.read(log).updates)) == (5 << 20, 1)
    with log.open("a") as file:
        file.write("the rest of it\n" + update_line(2))
    curves = store.read(log)
    assert ([row["step"] for row in curves.updates], curves.left_out) == ([1, 2], 1)
    assert curves.offset == log.stat().st_size


def test_what_is_live_goes_on_behind_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SECONDS_BETWEEN_LOOKS", 0)
    log = tmp_path / "metrics.jsonl"
    log.write_text("x" * (5 << 20) + "\n" + update_line(2))

    async def is_gone() -> bool:
        return False

    async def first_rows() -> dict[str, Any]:
        async for event in live.follow_log(log, 0, is_gone):
            if event.startswith(b"id: "):
                told: dict[str, Any] = json.loads(event.split(b"data: ")[1])
                return told
        raise AssertionError("the log was not followed")

    told = asyncio.run(first_rows())
    assert ([row["step"] for row in told["rows"]], told["offset"]) == ([2], log.stat().st_size)
