"""What is handed over holds nothing that acts by lying there."""

from pathlib import Path

from gametape.core.task import TaskTests
from gametape.desk.goals.baseline import Baseline
from gametape.desk.goals.delivering import delivered
from gametape.desk.goals.subject import subject_of
from gametape.verify.tree import Tree
from tests.desk.goals.shop import MENDED, START, lay


def test_no_repository_is_handed_over(tmp_path: Path) -> None:
    """The owner's git would read its configuration, which names programs to run."""
    traps = {
        **dict.fromkeys((".git", "a/.git", "b/.GIT", "c/git~1", "d/.g\u200cit"), "gitdir: evil\n"),
        **{f"evil/{path}": "x\n" for path in ("HEAD", "objects/x", "refs/x", "config")},
    }
    bare = Baseline(test_paths=["tests"], import_roots=["."], files=[])
    subject = subject_of("goal", "", START, bare, None, TaskTests(fail_to_pass=[], pass_to_pass=[]))
    tree, left_out = delivered(subject, lay(tmp_path, {**traps, "shop.py": MENDED}), Tree())
    assert set(tree) - set(START) == {"evil/objects/x", "evil/refs/x", "evil/config"}
    assert tree.text("shop.py") == MENDED
    assert {".git", "b/.GIT", "evil/HEAD"} <= set(left_out)
