"""Siblings and any rollouts of one task stand beside each other by turn, from where they part."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gametape.record.trajectory_index import index_trajectory
from gametape.studio.web.alignment import align
from gametape.studio.web.tape import Tape

from ..runs import HOSTILE, make_run, score
from .site import Markup, browser, check_harmless, open_site, step_of, write_tape


def turn(number: int, said: str, called: str = "ls", back: str = "fine", failed: bool = False) -> dict[str, Any]:
    call = {"tool_call_id": "c", "function_name": "shell", "arguments": {"command": called}}
    result = {"source_call_id": "c", "content": back, "extra": {"gametape": {}, "failed": failed}}
    return step_of(number, message=said, tool_calls=[call], observation={"results": [result]})


def asked(number: int) -> dict[str, Any]:
    return {"step_id": number, "source": "user", "message": "please"}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs with rollouts of one task, and one of another."""
    for name in ("one", "two"):
        make_run(tmp_path / name, "rlvr", [score(0, 0.2)])
    kept = tmp_path / "one" / "trajectories"
    told = {"task": "t", "outcome": "passed", "reward": 1.0}
    alike = [asked(1), turn(2, "look"), turn(3, "read", "cat a")]
    write_tape(kept / "d7.000.json", [*alike, turn(4, "edit right"), turn(5, "done")], extra=told)
    write_tape(kept / "d7.001.json", [*alike, turn(4, HOSTILE, HOSTILE, HOSTILE, True)], extra=told | {"reward": 0.25})
    write_tape(kept / "d8.000.json", [asked(1), turn(2, "look")], extra={"task": "other"})
    write_tape(tmp_path / "two" / "trajectories" / "e1.000.json", [turn(1, "look", back="else")], extra=told)
    return tmp_path


@pytest.fixture
def client(runs: Path) -> TestClient:
    return browser(open_site(runs))


def rows_of(page: Markup) -> list[str]:
    return [line.strip() for line in page.text.splitlines() if line.strip()]


def test_what_siblings_did_alike_stands_once_and_the_parting_turn_is_marked(client: TestClient) -> None:
    page = check_harmless(client.get("/group?run=one&group=d7").text)
    assert "did the same until turn 2 and part in turn 3" in page.text
    assert page.text.count("shell command=cat a") == 1
    assert page.text.count("edit right") == 1
    assert page.text.count("they part") == 1
    assert page.text.count("ended before") == 1
    for reward in ("1", "0.25"):
        assert f"reward {reward}, passed" in page.text
    (parting,) = [attributes for tag, attributes in page.tags if tag == "tr" and attributes.get("class") == "parts"]
    assert parting["id"] == "parting"
    assert "/tape?run=one&rollout=d7.001#step=4" in [attributes.get("href") for _, attributes in page.tags]


def test_rollouts_of_two_runs_stand_beside_each_other(client: TestClient) -> None:
    page = check_harmless(client.get("/compare?run=one&rollout=d7.000&run=two&rollout=e1.000").text)
    assert "did the same until turn 1 and part in turn 2" in page.text
    assert "What came back is not the same in all; this is of one." in page.text
    assert "different tasks" not in page.text


def test_rollouts_of_different_tasks_are_shown_and_named(client: TestClient) -> None:
    text = check_harmless(client.get("/compare?run=one&rollout=d7.000&rollout=d8.000").text).text
    assert "rollouts of different tasks: other, t." in " ".join(text.split())


def test_without_a_name_it_offers_those_of_the_same_task(client: TestClient) -> None:
    page = check_harmless(client.get("/compare?run=one&rollout=d7.000&run=two&rollout=").text)
    hrefs = [attributes.get("href") for tag, attributes in page.tags if tag == "a"]
    assert "/compare?run=one&rollout=d7.000&run=two&rollout=e1.000" in hrefs
    own = check_harmless(client.get("/compare?run=one&rollout=d7.000&run=one&rollout=").text)
    offered = [attributes.get("href") or "" for tag, attributes in own.tags if tag == "a"]
    assert [href for href in offered if href.startswith("/compare")] == [
        "/compare?run=one&rollout=d7.000&run=one&rollout=d7.001"
    ]


def test_the_table_of_rollouts_and_the_tape_lead_there(client: TestClient) -> None:
    page = check_harmless(client.get("/rollouts?run=one").text)
    boxes = [attributes["value"] for tag, attributes in page.tags if attributes.get("name") == "rollout"]
    assert boxes == ["d7.000", "d7.001", "d8.000"]
    assert "/compare?run=one&amp;rollout=d7.000" in client.get("/tape?run=one&rollout=d7.000").text


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("run=one", 422),
        ("run=one&run=two&rollout=d7.000", 422),
        ("run=one&rollout=nothing", 404),
        ("run=nothing&rollout=x", 404),
        ("run=one&rollout=", 404),
        ("run=one&rollout=../config", 404),
    ],
)
def test_what_is_no_rollout_is_refused(client: TestClient, query: str, status: int) -> None:
    assert client.get(f"/compare?{query}").status_code == status


def test_a_broken_rollout_is_named_beside_those_that_can_be_read(client: TestClient, runs: Path) -> None:
    (runs / "one" / "trajectories" / "d7.000.json").write_text("{")
    page = check_harmless(client.get("/group?run=one&group=d7").text)
    assert "d7.000 cannot be read here" in page.text
    assert "rollout 001" in page.text


def test_of_long_rollouts_the_turns_around_the_parting_are_read(tmp_path: Path) -> None:
    tapes = []
    for name, other in (("a", "left"), ("b", "right")):
        steps = [asked(1), *(turn(at, f"t{at}") for at in range(2, 102)), turn(102, other)]
        path = write_tape(tmp_path / f"{name}.json", [*steps, *(turn(at, other) for at in range(103, 203))])
        tapes.append(Tape(index_trajectory(path)))
        tapes[-1].read_on()
    found = align(tapes)
    assert (found.parting, found.earlier, found.rows[0].number) == (101, 88, 89)
    assert [row.common for row in found.rows] == [True] * 12 + [False] * 30
    assert found.later == 201 - 130
    assert [one.said if one else "" for one in found.rows[12].turns] == ["left", "right"]
    alike = align([tapes[0], tapes[0]])
    assert (alike.parting, alike.later) == (0, 0)
    assert align([]).rows == []
