"""What an attempt at a goal is, how it is judged, and the small shop that most of them are about."""

from dataclasses import dataclass, field
from pathlib import Path

from gametape.desk.goals.assurance import assurance_detail
from gametape.desk.goals.baseline import measure_baseline
from gametape.desk.goals.deciding_files import FileRoles
from gametape.desk.goals.goal import Goal
from gametape.desk.goals.held_out import lay_files
from gametape.desk.goals.judge import GoalJudge, GoalVerdict, with_held_out
from gametape.desk.goals.success_command import read_command
from gametape.record.source_tree import SourceTree
from gametape.verify.runner import ZygotePool

SHOP = "def total(prices):\n    return sum(prices) + 1\n"
MENDED = "def total(prices):\n    return sum(prices)\n"
TESTS = """\
import pytest

from shop import total


@pytest.mark.parametrize(("prices", "expected"), [([], 0), ([1, 2], 3), ([5, 5], 10), ([20, 4], 24), ([9, 8, 7], 24)])
def test_total(prices, expected):
    assert total(prices) == expected


def test_total_of_one():
    assert total([7]) == 7
"""
PYTEST = {"shop.py": SHOP, "tests/test_shop.py": TESTS}
FORGES = "could forge their results"
ONLY_TESTS = "can alter what the tests ask, and that the agent changed: "
TABLE_TOLD = "hardly any near them"
CHECK = "import sys\n\nsys.path.insert(0, '.')\nfrom shop import total\n\nsys.exit(total([1, 2]) != 3)\n"
CHECK_C = '#include <assert.h>\n#include "shop.h"\nint main(void) { assert(total(1, 2) == 3); return 0; }\n'
CHR = "def _word(*codes):\n    return ''.join(map(chr, codes))\n\n\n"
FILE_TESTS = """\
from shop import load


def test_two(tmp_path):
    (tmp_path / "a").write_text("1\\n2\\n")
    assert load(tmp_path / "a") == 3


def test_more(tmp_path):
    (tmp_path / "a").write_text("1\\n2\\n30\\n")
    assert load(tmp_path / "a") == 33
"""
LOADS = SHOP + "\n\ndef load(path):\n    return total(map(int, path.read_text().split())) + 1\n"
MAKE = "check:\n\t@python3 tools/check.py\n"


@dataclass(frozen=True)
class Attempt:
    name: str
    success: str
    files: dict[str, str]
    changes: dict[str, str | None]
    told: tuple[str, ...] = ()
    """Words of which one has to be in `assurance_detail`, if the goal is reached: what a reader needs to see it."""
    programs: tuple[str, ...] = ()
    held_out: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    pin: tuple[str, ...] = ()
    fails: str = ""
    """Why this one gets through, or why this honest one does not."""


def _lay(directory: Path, attempt: Attempt) -> Path:
    for path, text in {**attempt.files, **attempt.changes}.items():
        if text is not None:
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode())
            target.chmod(0o755 if path in attempt.programs else 0o644)
    for path, target_of_link in attempt.links.items():
        (directory / path).symlink_to(target_of_link)
    return directory


def judge_attempt(attempt: Attempt, directory: Path) -> tuple[GoalVerdict, str]:
    """The verdict, and the sentences about it."""
    files = {path: text.encode() for path, text in attempt.files.items()}
    start = SourceTree(files, frozenset(path for path in attempt.programs if path in attempt.files))
    goal = Goal(
        goal_id="goal", workspace="/", success=attempt.success, model="", instruction="Mend it.", created=0.0,
        held_out="held_out_tests" if attempt.held_out else None, pin=attempt.pin,
    )  # fmt: skip
    with ZygotePool() as zygotes:
        baseline = measure_baseline(start, attempt.success, None, False, zygotes, FileRoles(pinned=attempt.pin))
        judge = GoalJudge(goal, read_command(attempt.success), start, baseline, directory / "home", zygotes)
        workspace = _lay(directory / "workspace", attempt)
        judged = judge.judge(workspace)
        if judged.reached and attempt.held_out:
            hidden = SourceTree({path: text.encode() for path, text in attempt.held_out.items()})
            around = hidden.overlaid_on(start)
            command = "pytest 'held_out_tests'"
            first = measure_baseline(around, command, None, False, zygotes)
            lay_files(hidden, workspace)
            second = GoalJudge(goal, read_command(command), around, first, directory / "home", zygotes)
            judged = with_held_out(judged, second.judge(workspace))
        return judged, assurance_detail(goal, judge.criterion, baseline, judged.evidence())
