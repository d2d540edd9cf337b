"""A goal as a whole, with steps kept in memory: reached, not reached, killed, cancelled, applied."""

import asyncio
import hashlib
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gametape.agent.constraints import Constraints
from gametape.desk.goals.baseline import GoalBaseline, measure_baseline
from gametape.desk.goals.branch import head_of
from gametape.desk.goals.failure_text import NO_TEST_PASSES
from gametape.desk.goals.goal import Goal, GoalDirectory
from gametape.desk.goals.goal_request import write_goal
from gametape.desk.goals.job import pursue_goal
from gametape.record.source_tree import SourceTree
from gametape.record.trajectory_file import load_trajectory
from gametape.tasks.mining.project_layout.source_reader import read_project_source
from gametape.verify.runner import ZygotePool
from tests.desk.goals.shop import DONE, FILES, MENDED, PRODUCT, START, SUCCESS, TESTS, call, lay, script, write
from tests.desk.steps import Kept, Killed, MemoryRecorder

Make = Callable[..., tuple[Path, GoalDirectory]]
_HONEST = (call("read", path="shop.py"), DONE, write("shop.py", MENDED), DONE)
_GIT = ("git", "-c", "user.name=me", "-c", "user.email=me@localhost")


@pytest.fixture(scope="module")
def measure(baseline: GoalBaseline) -> Callable[[SourceTree], GoalBaseline]:
    """The baseline of a workspace, measured once for each."""
    known = {START.digest: baseline}

    def measured(start: SourceTree) -> GoalBaseline:
        if start.digest not in known:
            known[start.digest] = measure_baseline(start, SUCCESS, None, False, ZygotePool())
        return known[start.digest]

    return measured


@pytest.fixture
def goal(tmp_path: Path, measure: Callable[[SourceTree], GoalBaseline]) -> Callable[..., tuple[Path, GoalDirectory]]:
    def make(turns: tuple[dict[str, Any], ...], **wished: Any) -> tuple[Path, GoalDirectory]:
        home, workspace = tmp_path / "home", tmp_path / "workspace"
        if not workspace.exists():
            lay(workspace)
        start = read_project_source(workspace)
        asked = Goal(
            goal_id="goal-20261115-000000",
            workspace=str(workspace),
            success=SUCCESS,
            model=script(tmp_path / "turns.jsonl", turns),
            created=time.time(),
            head=head_of(workspace),
            **{"instruction": "Mend the sum.", **wished},
        )
        return home, write_goal(home, asked, start, measure(start))

    return make


def _run(home: Path, place: GoalDirectory, steps: MemoryRecorder | None = None) -> dict[str, Any]:
    return asyncio.run(pursue_goal(home, steps or MemoryRecorder(), place))


def _git(directory: Path | str, *words: str) -> str:
    return subprocess.run([*_GIT, "-C", directory, *words], capture_output=True, text=True, check=True).stdout


def _everything(directory: Path) -> str:
    whole = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        whole.update(f"{path} {path.lstat().st_mode} {path.lstat().st_mtime_ns}".encode())
        whole.update(path.read_bytes() if path.is_file() else b"")
    return whole.hexdigest()


def test_honest_work_reaches_it_at_the_second_attempt_and_leaves_the_workspace_alone(
    tmp_path: Path, goal: Make
) -> None:
    home, place = goal(_HONEST)
    before = _everything(tmp_path / "workspace")
    answer = _run(home, place)
    assert (answer["reached"], answer["reason"], answer["assurance"]) == (True, "reached", "verifier")
    assert [attempt["criterion"]["passed"] for attempt in answer["attempts"]] == [1, 5]
    assert answer["applied"] is False
    assert _everything(tmp_path / "workspace") == before
    assert "-    return sum(prices) + 1" in Path(answer["patch"]).read_text()
    assert "`shop.py` changed (+1 -1)" in Path(answer["summary"]).read_text()
    assert _git(answer["repository"], "show", f"{answer['branch']}:shop.py") == MENDED
    record = load_trajectory(Path(answer["trajectory"]))
    assert (record.extra or {})["goal_id"] == place.root.name
    output = [str(step.message) for step in record.steps if step.source == "user"]
    assert "test_total_of_one" in output[1]
    assert "twin" not in output[1]


@pytest.mark.slow
def test_a_killed_goal_goes_on_where_it_was(goal: Make) -> None:
    home, place = goal(_HONEST)
    stored, lives = Kept(), 0
    for die_at, after in ((1, False), (1, True), (1, True), (2, False)):
        with pytest.raises(Killed):
            _run(home, place, MemoryRecorder(stored=stored, die_at=die_at, after_keeping=after))
        lives += 1
    answer = _run(home, place, MemoryRecorder(stored=stored))
    assert lives == 4
    assert answer["reached"]
    record = load_trajectory(Path(answer["trajectory"]))
    assert sum(step.source == "agent" for step in record.steps) == 4
    assert sum(step.source == "user" for step in record.steps) == 2


def test_a_cheat_is_named_and_undone_and_an_impossible_goal_ends_with_the_best_state(goal: Make) -> None:
    better = PRODUCT.replace("sum(prices) + 1", "sum(prices) + (not prices)")
    turns = (
        *(write("tests/test_shop.py", TESTS.replace("== expected", "")), DONE),
        *(write("shop.py", better), DONE),
        *(write("shop.py", "def total(prices):\n    return 0\n"), DONE),
    )
    home, place = goal(turns, attempts=3)
    answer = _run(home, place)
    assert (answer["reached"], answer["reason"], answer["best"]) == (False, "attempts", 1)
    assert [bool(attempt["tampering"]) for attempt in answer["attempts"]] == [True, False, False]
    assert answer["attempts"][0]["tampering"][0]["rule"].startswith("tests.")
    assert (place.workspace / "shop.py").read_text() == better
    assert (place.workspace / "tests" / "test_shop.py").read_text() == TESTS


@pytest.mark.slow
def test_tests_that_follow_a_moved_module_are_handed_over_with_it(goal: Make) -> None:
    turns = (
        write("store.py", MENDED),
        call("shell", command="rm shop.py"),
        write("tests/test_shop.py", TESTS.replace("from shop", "from store")),
        DONE,
    )
    home, place = goal(turns)
    answer = _run(home, place)
    assert answer["reached"], answer
    assert answer["check_files"]["followed"] == ["tests/test_shop.py"]
    assert "from store import" in (place.workspace / "tests" / "test_shop.py").read_text()
    assert not (place.workspace / "shop.py").exists()


@pytest.mark.slow
def test_instructions_that_were_used_as_the_agent_left_them_are_handed_over(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    files = {
        "Makefile": "include sources.mk\ncheck:\n\t@for one in $(SOURCES); do python3 $$one; done | diff - want\n",
        "sources.mk": "SOURCES = one.py\n",
        "one.py": "print(1)\n",
        "want": "1\n2\n",
    }
    start = SourceTree({path: text.encode() for path, text in files.items()})
    start.write_to(workspace)
    turns = (write("two.py", "print(2)\n"), write("sources.mk", "SOURCES = one.py two.py\n"), DONE)
    asked = Goal(
        goal_id="goal-20261115-000000",
        workspace=str(workspace),
        success="make check",
        model=script(tmp_path / "turns.jsonl", turns),
        created=time.time(),
        instruction="Add the second part.",
    )
    home = tmp_path / "home"
    place = write_goal(home, asked, start, measure_baseline(start, "make check", None, False, ZygotePool()))
    answer = _run(home, place)
    assert answer["reached"], answer
    assert answer["check_files"]["used_as_left"] == ["sources.mk"]
    assert (place.workspace / "sources.mk").read_text() == "SOURCES = one.py two.py\n"


@pytest.mark.slow
@pytest.mark.parametrize(("wished", "reason"), [({"budget_tokens": 3000}, "budget"), ({"deadline": 1.0}, "deadline")])
def test_what_is_used_up_ends_it(goal: Make, wished: dict[str, Any], reason: str) -> None:
    home, place = goal((call("shell", command="true"),) * 30, **wished)
    answer = _run(home, place)
    assert (answer["reached"], answer["reason"], len(answer["attempts"])) == (False, reason, 1)


@pytest.mark.slow
def test_a_cancelled_goal_ends(goal: Make) -> None:
    home, place = goal((call("shell", command="sleep 60"),))
    answer = _run(home, place, MemoryRecorder(stored=Kept(cancelled=True)))
    assert (answer["reached"], answer["reason"]) == (False, "cancelled")


@pytest.mark.slow
def test_constraints_hold_and_each_breach_is_on_record(goal: Make) -> None:
    home, place = goal((*_HONEST[2:],), constraints=Constraints(unwritable=["shop.py"]), attempts=1)
    answer = _run(home, place)
    assert not answer["reached"]
    record = load_trajectory(Path(answer["trajectory"]))
    assert [event["kind"] for step in record.steps for event in step.gametape_extra.events or []] == ["constraint"]


@pytest.mark.slow
def test_apply_writes_into_a_git_workspace_and_only_the_files_that_changed(tmp_path: Path, goal: Make) -> None:
    workspace = lay(tmp_path / "workspace", {".gitignore": "*.log\n", "run.log": "x"})
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
        _git(workspace, *words)
    (workspace / "notes.txt").write_text("not committed")
    index = (workspace / ".git" / "index").read_bytes()
    home, place = goal((*_HONEST[2:],), apply=True)
    stored = Kept()
    with pytest.raises(Killed):
        _run(home, place, MemoryRecorder(stored=stored, die_at=4))  # the workspace is written, and nobody knows it yet
    answer = _run(home, place, MemoryRecorder(stored=stored))
    assert (answer["applied"], answer["changed"]) == (True, ["shop.py"])
    assert (workspace / "shop.py").read_text() == MENDED
    assert (workspace / ".git" / "index").read_bytes() == index
    listed = _git(workspace, "ls-tree", "-r", "--name-only", answer["branch"])
    assert listed.split() == [".gitignore", "notes.txt", *sorted(FILES)]


@pytest.mark.slow
def test_apply_refuses_a_workspace_that_has_moved_on(tmp_path: Path, goal: Make) -> None:
    home, place = goal((*_HONEST[2:],), apply=True)
    (tmp_path / "workspace" / "shop.py").write_text("mine\n")
    answer = _run(home, place)
    assert (answer["reached"], answer["applied"]) == (True, False)
    assert "shop.py" in answer["not_applied"]
    assert (tmp_path / "workspace" / "shop.py").read_text() == "mine\n"


def test_a_goal_that_already_holds_costs_nothing(tmp_path: Path, goal: Make) -> None:
    lay(tmp_path / "workspace", {"shop.py": MENDED})
    home, place = goal((write("shop.py", PRODUCT), DONE), instruction_given=False)
    answer = _run(home, place)
    assert (answer["reached"], answer["reason"], answer["held_before"]) == (True, "already holds", True)
    assert (answer["attempts"], answer["tokens"], answer["branch"], answer["exit_code"]) == ([], 0, None, 0)
    assert load_trajectory(Path(answer["trajectory"])).outcome == "passed"
    assert "Reached (already holds)" in Path(answer["summary"]).read_text()


def test_a_goal_whose_tests_are_all_skipped_does_not_hold_already(tmp_path: Path, goal: Make) -> None:
    skipped = "import pytest\n\npytestmark = pytest.mark.skip\n\n\ndef test_shop():\n    assert False\n"
    lay(tmp_path / "workspace", {"tests/test_shop.py": skipped})
    home, place = goal((DONE,), instruction_given=False, attempts=1)
    answer = _run(home, place)
    assert (answer["reached"], answer["reason"], answer["held_before"]) == (False, "attempts", False)
    assert (answer["exit_code"], answer["attempts"][0]["criterion"]["exit_code"]) == (1, 1)
    assert answer["warnings"] == [NO_TEST_PASSES]


def test_with_an_instruction_the_work_is_done_all_the_same(tmp_path: Path, goal: Make) -> None:
    lay(tmp_path / "workspace", {"shop.py": MENDED})
    refactored = MENDED.replace("def cheapest", "def _unused():\n    return 0\n\n\ndef cheapest")
    home, place = goal((write("shop.py", refactored), DONE))
    answer = _run(home, place)
    assert (answer["reached"], answer["reason"], answer["held_before"]) == (True, "reached", True)
    assert len(answer["attempts"]) == 1
    assert (place.workspace / "shop.py").read_text() == refactored
    first = load_trajectory(Path(answer["trajectory"])).steps[1]
    assert "It succeeds already, and must still succeed" in str(first.message)


def test_the_agent_is_told_what_counts_and_its_budget(goal: Make) -> None:
    home, place = goal(
        (write("shop.py", MENDED), DONE), strict=False, budget_tokens=90_000, budget_usd=2.5, max_turns=4
    )
    answer = _run(home, place)
    assert answer["reached"]
    _, first, turn, *_ = load_trajectory(Path(answer["trajectory"])).steps
    assert "changes to those do not count" in str(first.message)
    assert "Your budget: 4 turns, 90,000 tokens and $2.50." in str(first.message)
    assert turn.observation is not None
    assert "[Budget left: 3 of 4 turns, " in str(turn.observation.results[-1].content)


def test_a_turn_that_was_cut_off_is_said(goal: Make) -> None:
    home, place = goal((write("shop.py", MENDED + "# long\n" * 500), DONE), max_turn_tokens=200, attempts=1)
    answer = _run(home, place)
    assert (answer["reached"], answer["cut_off"]) == (False, 1)
    assert answer["warnings"] == ["1 turn was cut off at 200 tokens (--max-turn-tokens)"]
