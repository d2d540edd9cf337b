"""The delivered tree contains no git repository; a result is written into a workspace as a whole or not at all."""

from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.core.task import TaskTests
from gametape.desk.goals.baseline import GoalBaseline, goal_task
from gametape.desk.goals.delivery import apply_result, deliverable_tree
from gametape.record.source_tree import SourceTree, read_tree
from tests.desk.goals.shop import MENDED, START, lay

_BEFORE = SourceTree({"a.py": b"1\n", "old.py": b"2\n", "run.sh": b"3\n"}, frozenset({"run.sh"}))
_AFTER = SourceTree({"a.py": b"one\n", "new/b.py": b"4\n", "run.sh": b"3\n"})


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    _BEFORE.write_to(tmp_path)
    return tmp_path


def test_everything_that_changed_is_written_and_nothing_else(workspace: Path) -> None:
    (workspace / "mine.txt").write_text("mine")
    assert apply_result(workspace, _BEFORE, _AFTER) == ["a.py", "new/b.py", "old.py", "run.sh"]
    assert read_tree(workspace) == SourceTree({**_AFTER.files, "mine.txt": b"mine"})
    assert apply_result(workspace, _BEFORE, _AFTER)  # killed before anybody knew that it was done


@pytest.mark.parametrize("moved", ["a.py", "old.py", "new/b.py"])
def test_a_file_that_has_moved_on_stops_all_of_it(workspace: Path, moved: str) -> None:
    (workspace / moved).parent.mkdir(exist_ok=True)
    (workspace / moved).write_text("mine")
    before = read_tree(workspace)
    with pytest.raises(BadInput, match=moved):
        apply_result(workspace, _BEFORE, _AFTER)
    assert read_tree(workspace) == before


def test_no_link_is_followed_out_of_the_workspace(workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (workspace / "new").symlink_to(outside)
    with pytest.raises(BadInput, match=r"new/b\.py"):
        apply_result(workspace, _BEFORE, _AFTER)
    assert not [*outside.iterdir()]


def test_no_repository_is_handed_over(tmp_path: Path) -> None:
    """The owner's git would read its configuration, which names programs to run."""
    traps = {
        **dict.fromkeys((".git", "a/.git", "b/.GIT", "c/git~1", "d/.g\u200cit"), "gitdir: evil\n"),
        **{f"evil/{path}": "x\n" for path in ("HEAD", "objects/x", "refs/x", "config")},
    }
    bare = GoalBaseline(test_paths=["tests"], import_roots=["."], files=[])
    task = goal_task("goal", "", START, bare, None, TaskTests(fail_to_pass=[], pass_to_pass=[]))
    tree, left_out = deliverable_tree(task, lay(tmp_path, {**traps, "shop.py": MENDED}), SourceTree())
    assert set(tree) - set(START) == {"evil/objects/x", "evil/refs/x", "evil/config"}
    assert tree.text("shop.py") == MENDED
    assert {".git", "b/.GIT", "evil/HEAD"} <= set(left_out)
