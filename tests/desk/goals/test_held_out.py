"""Tests that the agent never sees: they decide, and nothing of them but a number reaches the agent."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import BadInput
from gametape.desk.goals.check_text import check_lines
from gametape.desk.goals.goal import GoalDirectory
from gametape.desk.goals.goal_request import GoalRequest, create_goal
from gametape.desk.goals.held_out import lay_files, read_held_out
from gametape.desk.goals.job import pursue_goal
from gametape.record.source_tree import SourceTree
from gametape.record.trajectory_file import load_trajectory
from tests.desk.goals.shop import DONE, MENDED, SUCCESS, lay, script, write
from tests.desk.steps import MemoryRecorder

_HIDDEN = """\
from shop import total


def test_many_prices():
    assert total([1, 2, 3, 4]) == 10


def test_secret_price():
    assert total([1234]) == 1234
"""
_VISIBLE_ONLY = """\
def total(prices):
    return sum(prices[:2])


def cheapest(prices):
    return min(prices)
"""


def _create(tmp_path: Path, held_out: Path, turns: tuple[dict[str, Any], ...]) -> GoalDirectory:
    request = GoalRequest(
        workspace=tmp_path / "workspace",
        success=SUCCESS,
        model=script(tmp_path / "turns.jsonl", turns),
        instruction="Mend the sum.",
        held_out=held_out,
        attempts=2,
    )
    return create_goal(tmp_path / "home", request)


def test_they_decide_and_the_agent_is_told_a_number(tmp_path: Path) -> None:
    lay(tmp_path / "workspace")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "test_more.py").write_text(_HIDDEN)
    turns = (write("shop.py", _VISIBLE_ONLY), DONE, write("shop.py", MENDED), DONE)
    place = _create(tmp_path, tmp_path / "hidden", turns)
    assert check_lines(place)[-1] == "held out: 0 of 2 tests pass before"
    answer = asyncio.run(pursue_goal(tmp_path / "home", MemoryRecorder(), place))
    assert [attempt["held_out"] for attempt in answer["attempts"]] == [
        {"passed": 1, "required": 2}, {"passed": 2, "required": 2},
    ]  # fmt: skip
    assert answer["reached"]
    assert "2 of 2 tests that the agent never saw pass." in answer["assurance_detail"]
    assert "Only tests that the agent can read" not in answer["assurance_detail"]
    assert answer["pinned"] == ["tests/test_shop.py"]
    record = load_trajectory(Path(answer["trajectory"]))
    told = "\n".join(str(step.message) for step in record.steps)
    assert "The command succeeds, but 1 of 2 tests that you cannot see do not pass." in told
    assert not any(word in told for word in ("test_more", "many_prices", "secret_price", "1234"))
    assert sorted(path.name for path in place.workspace.iterdir()) == ["pyproject.toml", "shop.py", "tests"]


@pytest.mark.slow
def test_those_of_the_workspace_are_kept_from_the_agent_and_its_history(tmp_path: Path) -> None:
    workspace = lay(tmp_path / "workspace", {"tests/test_more.py": _HIDDEN})
    git = ("git", "-C", str(workspace), "-c", "user.name=me", "-c", "user.email=me@localhost")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
        subprocess.run([*git, *words], check=True)
    place = _create(tmp_path, workspace / "tests" / "test_more.py", (write("shop.py", MENDED), DONE))
    assert "tests/test_more.py" not in place.read_start()
    assert not place.history.exists()
    answer = asyncio.run(pursue_goal(tmp_path / "home", MemoryRecorder(), place))
    assert answer["reached"]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", answer["branch"]], check=True, capture_output=True, text=True
    )
    assert "tests/test_more.py" in listed.stdout.split()
    assert "test_more" not in (place.root / "patch.diff").read_text()


def test_what_is_no_test_is_refused_at_once(tmp_path: Path) -> None:
    workspace = lay(tmp_path / "workspace")
    (tmp_path / "empty").mkdir()
    start = SourceTree({"held_out_tests/a.py": b""})
    with pytest.raises(BadInput, match="no such file"):
        read_held_out(tmp_path / "none", workspace, start)
    with pytest.raises(BadInput, match="no Python file"):
        read_held_out(tmp_path / "empty", workspace, start)
    with pytest.raises(BadInput, match="the whole workspace"):
        read_held_out(tmp_path, workspace, start)
    (tmp_path / "one.py").write_text("A = 1\n")
    assert read_held_out(tmp_path / "one.py", workspace, start).path == "held_out_tests_2/one.py"


def test_they_are_laid_over_whatever_an_agent_left_there(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "hidden").symlink_to(outside)
    lay_files(SourceTree({"hidden/test_a.py": b"A"}), workspace)
    assert (workspace / "hidden" / "test_a.py").read_bytes() == b"A"
    assert [*outside.iterdir()] == []


def test_a_directory_where_a_test_belongs_gives_way(tmp_path: Path) -> None:
    (tmp_path / "hidden" / "test_a.py" / "deep").mkdir(parents=True)
    (tmp_path / "hidden" / "test_a.py" / "deep" / "file").touch()
    lay_files(SourceTree({"hidden/test_a.py": b"A"}), tmp_path)
    assert (tmp_path / "hidden" / "test_a.py").read_bytes() == b"A"
