"""`gametape solve --watch`: an agent that does the same again and again is told so, unless nobody is to watch it."""

import json
from pathlib import Path

import pytest

from gametape.cli.main import main
from gametape.record.trajectory_file import load_trajectory

TASK = Path(__file__).parents[2] / "examples/tasks/double"
TURNS = 30


@pytest.mark.parametrize(("option", "rungs"), [("--watch", ["nudge"]), ("--no-watch", [])])
def test_a_loop_is_nudged_where_somebody_watches(tmp_path: Path, option: str, rungs: list[str]) -> None:
    turn = {"text": "I look.", "tool_calls": [{"name": "read", "arguments": {"path": "double.py"}}]}
    (tmp_path / "loop.jsonl").write_text((json.dumps(turn) + "\n") * TURNS)
    words = ["--model", f"scripted:{tmp_path}/loop.jsonl", "--home", str(tmp_path / "home")]
    with pytest.raises(SystemExit) as ended:
        main(["solve", str(TASK), *words, "--out", str(tmp_path / "out"), "--max-turns", str(TURNS), option])
    record = load_trajectory(tmp_path / "out/trajectory.json")
    events = [(step.step_id, event) for step in record.steps for event in step.gametape_extra.events or []]
    trips = [(at, event) for at, event in events if event["kind"] == "breaker"]
    assert (ended.value.code, record.outcome) == (1, "limit")
    assert [event["rung"] for _, event in trips] == rungs
    assert all(event["detail"].startswith("nudge: loop (") for _, event in trips)
    assert all(at > TURNS / 2 for at, _ in trips), "before it is a loop"
