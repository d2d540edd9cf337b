"""`gametape solve --watch`: an agent that does the same again and again is told so, unless nobody is to watch it."""

import json
from pathlib import Path

import pytest

from gametape.cli.main import main
from gametape.record.trajectory_file import load_trajectory

TASK = Path(__file__).parents[2] / "examples/tasks/double"
TURNS = 30
pytestmark = pytest.mark.usefixtures("tasks_prepared_once")


@pytest.mark.parametrize(("option", "told_after"), [("--watch", [3, 6, 12, 24]), ("--no-watch", [])])
def test_a_loop_is_nudged_where_somebody_watches(tmp_path: Path, option: str, told_after: list[int]) -> None:
    turn = {"text": "I look.", "tool_calls": [{"name": "read", "arguments": {"path": "double.py"}}]}
    (tmp_path / "loop.jsonl").write_text((json.dumps(turn) + "\n") * TURNS)
    words = ["--model", f"scripted:{tmp_path}/loop.jsonl", "--home", str(tmp_path / "home")]
    with pytest.raises(SystemExit) as ended:
        main(["solve", str(TASK), *words, "--out", str(tmp_path / "out"), "--max-turns", str(TURNS), option])
    record = load_trajectory(tmp_path / "out/trajectory.json")
    turns, trips = 0, []
    for step in record.steps:
        turns += step.source == "agent"
        trips += [(turns, event["detail"]) for event in step.gametape_extra.events or [] if event["kind"] == "breaker"]
    assert (ended.value.code, record.outcome) == (1, "limit")
    assert [at for at, detail in trips if detail.startswith("nudge: repeated call (")] == told_after
    loops = [at for at, detail in trips if detail.startswith("nudge: loop (")]
    assert len(loops) == (option == "--watch")
    assert all(at > TURNS / 2 for at in loops), "before it is a loop"
