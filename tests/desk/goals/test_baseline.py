"""The baseline: what is demanded in the end, and which commands could never decide anything."""

from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.desk.goals.baseline import GoalBaseline, measure_baseline
from gametape.desk.goals.goal import Goal
from gametape.desk.goals.judge import GoalJudge, GoalVerdict
from gametape.desk.goals.minimum_counts import required_tests
from gametape.desk.goals.success_command import read_command
from gametape.record.source_tree import SourceTree
from gametape.verify.runner import ZygotePool
from tests.desk.goals.shop import FILES, START

_UNWRITTEN = """\
import pytest

from shop import discount
from shop_taxes import tax


@pytest.mark.parametrize("price", [10, 20, 30])
def test_discount(price):
    assert discount(price) == price / 2


class TestTax:
    def test_tax(self):
        assert tax(10) == 2


@pytest.mark.skip
def test_never():
    assert tax(10) == 3
"""


def _judged(
    start: SourceTree,
    success: str,
    changed: dict[str, str],
    home: Path,
    strict: bool = False,
    baseline: GoalBaseline | None = None,
) -> GoalVerdict:
    goal = Goal(goal_id="g", workspace="/", success=success, model="", instruction="", created=0.0, strict=strict)
    baseline = baseline or measure_baseline(start, success, None, strict, ZygotePool())
    workspace = home / "workspace"
    SourceTree({path: text.encode() for path, text in changed.items()}).overlaid_on(start).write_to(workspace)
    return GoalJudge(goal, read_command(success), start, baseline, home).judge(workspace)


def test_tests_of_code_that_is_not_written_yet_are_counted_and_demanded(tmp_path: Path) -> None:
    start = SourceTree({"tests/test_new.py": _UNWRITTEN.encode()}).overlaid_on(START)
    baseline = measure_baseline(start, "pytest tests/test_new.py", None, strict=False, zygotes=ZygotePool())
    assert baseline.floors == {"tests/test_new.py::test_discount": 3, "tests/test_new.py::TestTax::test_tax": 1}
    assert baseline.unread_excused == ["tests/test_new.py::test_never"]
    hidden = required_tests(baseline.floors, ["tests/test_new.py::test_discount[10]"])
    assert len(hidden) == 4
    written = {
        "shop.py": FILES["shop.py"] + "\n\ndef discount(price):\n    return price / 2\n",
        "shop_taxes.py": "def tax(price):\n    return price / 5\n",
    }
    assert _judged(start, "pytest tests/test_new.py", written, tmp_path, baseline=baseline).reached


@pytest.mark.slow
def test_an_excused_test_may_stay_so_and_may_not_fail(tmp_path: Path) -> None:
    tests = (
        "import pytest, shop\n\n\n@pytest.mark.skipif(not hasattr(shop, 'late'), reason='soon')\ndef test_late():\n"
        "    assert shop.late() == 1\n\n\ndef test_early():\n    assert shop.early() == 1\n"
    )
    start = SourceTree({"shop.py": b"", "tests/test_shop.py": tests.encode()})
    early = "def early():\n    return 1\n"
    assert _judged(start, "pytest", {"shop.py": early}, tmp_path / "a").reached
    wrong = early + "\n\ndef late():\n    return 2\n"
    assert not _judged(start, "pytest", {"shop.py": wrong}, tmp_path / "b").reached
    assert not _judged(start, "pytest", {"shop.py": early}, tmp_path / "c", strict=True).reached
    assert _judged(start, "pytest", {"shop.py": wrong.replace("2", "1")}, tmp_path / "d", strict=True).reached


def test_tests_of_which_none_passes_hold_nothing(tmp_path: Path) -> None:
    tests = (
        "import pytest, shop\n\n\n@pytest.mark.skipif(not hasattr(shop, 'late'), reason='soon')\ndef test_late():\n"
        "    assert shop.late() == 1\n\n\n@pytest.mark.xfail\ndef test_known():\n    assert shop.known() == 1\n"
    )
    start = SourceTree({"shop.py": b"", "tests/test_shop.py": tests.encode()})
    baseline = measure_baseline(start, "pytest", None, False, ZygotePool())
    assert not baseline.holds(strict=False)

    def judged(product: dict[str, str], name: str) -> GoalVerdict:
        return _judged(start, "pytest", product, tmp_path / name, baseline=baseline)

    idle = judged({}, "a")
    assert (idle.reached, idle.criterion["exit_code"], idle.tampering) == (False, 1, ())
    assert "No test passes" in idle.feedback
    assert judged({"shop.py": "def late():\n    return 1\n"}, "b").reached
    assert not judged({"shop.py": "def late():\n    return 2\n"}, "c").reached


@pytest.mark.slow
def test_the_command_and_the_configuration_select(tmp_path: Path) -> None:
    settings = b"[tool.pytest.ini_options]\naddopts = ['-q', '-k', 'not total and not later']\n"
    configured = measure_baseline(
        SourceTree({"pyproject.toml": settings}).overlaid_on(START), "pytest", None, strict=False, zygotes=ZygotePool()
    )
    assert [*configured.results] == ["tests/test_shop.py::test_cheapest", "tests/test_shop.py::test_known"]
    judged = _judged(START, "pytest -k cheapest --deselect tests/test_shop.py::test_known", {}, tmp_path)
    assert judged.reached
    assert (judged.required, judged.criterion["deselected"]) == (1, 6)


@pytest.mark.slow
def test_another_command_counts_by_its_exit_code_over_what_is_pinned(tmp_path: Path) -> None:
    start = SourceTree({"Makefile": b"check:\n\t@python -c 'import shop; assert shop.total([1]) == 1'\n"}).overlaid_on(
        START
    )
    mended = {"shop.py": FILES["shop.py"].replace(" + 1", "")}
    assert _judged(start, "make check", mended, tmp_path / "a").reached
    faked = _judged(start, "make check", {"Makefile": "check:\n\t@true\n"}, tmp_path / "b")
    assert not faked.reached
    assert faked.criterion["exit_code"] not in (0, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("success", "strict", "said"),
    [
        ("pytest shop.py", False, "no test is collected"),
        ("pytest -k nothing_like_this", False, "no test is selected"),
        ("pytest -k cheapest", True, "deselects 6"),
        ("pytest -k 'cheapest and'", False, "pytest refuses"),
        ("no-such-program --check", False, "cannot start"),
    ],
)
def test_a_command_that_can_never_decide_is_refused(success: str, strict: bool, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        measure_baseline(START, success, None, strict, ZygotePool())
