"""What is handed over holds nothing that acts by lying there."""

from pathlib import Path

from gametape.core.task import TaskTests
from gametape.desk.goals.baseline import GoalBaseline, goal_task
from gametape.desk.goals.delivery import deliverable_tree
from gametape.record.source_tree import SourceTree
from tests.desk.goals.shop import MENDED, START, lay


def test_no_repository_is_handed_over(tmp_path: Path) -> None:
    """The owner's git would read its configuration, which names programs to run."""
    traps = {
        **dict.fromkeys((".git", "a/.git", "b/.GIT", "c/git~1", "d/.g\u200cit"), "gitdir: evil\n"),
        **{f"evil/{path}": "x\n" for path in ("HEAD", "objects/x", "refs/x", "config")},
    }
    bare = GoalBaseline(test_paths=["tests"], import_roots=["."], files=[])
    subject = goal_task("goal", "", START, bare, None, TaskTests(fail_to_pass=[], pass_to_pass=[]))
    tree, left_out = deliverable_tree(subject, lay(tmp_path, {**traps, "shop.py": MENDED}), SourceTree())
    assert set(tree) - set(START) == {"evil/objects/x", "evil/refs/x", "evil/config"}
    assert tree.text("shop.py") == MENDED
    assert {".git", "b/.GIT", "evil/HEAD"} <= set(left_out)
