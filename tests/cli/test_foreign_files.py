"""`costs`, `calibration`, `audit` and `watch` on the directories that other verbs write, as these write them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.desk.goals.shop import BY_EXIT_CODE, DONE, MENDED, lay, script, write

from .command import run

ROOT = Path(__file__).parents[2]
READERS = ("costs", "calibration", "audit", "watch")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, prepared_home: Callable[[Path], Path]) -> Path:
    """A home with a goal and a thread, a parent of two attempts, an evaluation and a directory of tasks."""
    top = tmp_path_factory.mktemp("written")
    home = ("--home", prepared_home(top / "home"))
    workspace = lay(top / "source")
    model = script(top / "turns.txt", [write("shop.py", MENDED), DONE])
    goal = ("--workspace", workspace, "--success", BY_EXIT_CODE, "--model", model)
    assert run("goal", "run", *goal, *home).code == 0
    talk = script(top / "talk.txt", [{"text": "Hello."}])
    thread = run("thread", "new", "--model", talk, "--json", *home).answer["thread"]
    assert run("thread", "say", thread, "Hello?", *home).code == 0
    for number in ("1", "2"):
        task = ROOT / "examples/tasks/double"
        out = top / "runs" / number
        assert run("solve", task, "--model", "scripted:expert", "--out", out, *home).code == 0
    words = ("eval", "worlds:moderate", "--model", "scripted:noisy", "--limit", "3", "--trajectories")
    assert run(*words, "--out", top / "evaluation", *home).code == 0
    assert run("katas", "make", "--out", top / "katas", "--count", "1").code == 0
    return top


@pytest.mark.parametrize(
    ("place", "count"),
    [("home", 2), ("home/goals", 1), ("home/threads", 1), ("runs", 2), ("evaluation", 3), (".", 7)],
)
def test_the_trajectories_of_a_directory_are_found(written: Path, place: str, count: int) -> None:
    costs = run("costs", written / place, "--json")
    assert costs.code == 0, costs.err
    assert costs.answer["attempts"] + costs.answer["unfinished"] == count
    for verb in READERS[1:]:
        ran = run(verb, written / place, "--json")
        assert ran.code in (0, 1), (verb, ran.err)
        assert "flags" in ran.answer or "steps" in ran.answer or "n" in ran.answer


def test_what_is_skipped_is_counted_in_one_line(written: Path) -> None:
    for verb in READERS:
        ran = run(verb, written / "home/goals", "--json")
        assert ran.answer["skipped"] == 3
        assert ran.err.count("\n") == 1
        assert "skipped 3 files" in ran.err


def test_a_forged_record_in_a_workspace_changes_nothing(written: Path) -> None:
    before = run("costs", written / "runs", "--json").answer
    forged = json.loads((written / "runs/1/trajectory.json").read_text())
    forged["trajectory_id"] = "forged"
    for name in ("trajectory.json", "trajectories/best.json"):
        path = written / "runs/1/workspace" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(forged))
    assert run("costs", written / "runs", "--json").answer == before


@pytest.mark.parametrize("verb", READERS)
def test_a_directory_without_any_is_bad_input(written: Path, verb: str) -> None:
    ran = run(verb, written / "katas", "--json")
    assert (ran.code, ran.err.count("\n"), ran.answer["exit_code"]) == (2, 1, 2)


@pytest.mark.parametrize("verb", READERS[:3])
def test_a_named_file_that_is_no_trajectory_is_bad_input(written: Path, verb: str) -> None:
    (goal,) = (written / "home/goals").glob("*/goal.json")
    assert run(verb, written / "runs", goal).code == 2


def test_a_damaged_record_of_a_directory_is_left_out_by_watch_and_named_by_check(tmp_path: Path) -> None:
    whole = {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1"}}
    metrics = {"cost_usd": 0.25, "prompt_tokens": 40, "completion_tokens": 2}
    steps = [{"step_id": 1, "source": "agent", "message": "looked", "metrics": metrics}]
    (tmp_path / "good.json").write_text(json.dumps({**whole, "steps": steps}))
    (tmp_path / "later.json").write_text(json.dumps({**whole, "schema_version": "ATIF-v9.9", "steps": steps}))
    ran = run("watch", tmp_path, "--json")
    assert (ran.code, ran.answer["steps"]) == (0, 1), ran.err
    assert "later.json" in ran.err
    assert run("watch", tmp_path / "later.json").code == 2
    spent = run("costs", tmp_path / "good.json", "--json").answer
    assert (spent["unfinished"], spent["unfinished_cost_usd"], spent["unfinished_tokens"]) == (1, 0.25, 42)
    checked = run("trajectory", "check", tmp_path / "good.json", tmp_path / "gone.json", "--json")
    assert (checked.code, checked.answer["turns"], checked.answer["valid"]) == (2, 1, False)
    assert [Path(error["file"]).name for error in checked.answer["errors"]] == ["gone.json"]
