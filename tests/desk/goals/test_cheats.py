"""Nobody reaches a goal without doing the work, and whoever tries is named."""

from pathlib import Path

import pytest

from gametape.desk.goals.baseline import GoalBaseline
from gametape.desk.goals.goal import Goal
from gametape.desk.goals.judge import GoalJudge
from gametape.desk.goals.success_command import read_command
from tests.desk.goals.cheats import CHEATS, Cheat
from tests.desk.goals.shop import MENDED, START, SUCCESS, lay

_SAMPLE = ("edits a test", "exits when it is called", "reports passes from a conftest beside the tests", "fakes python")


@pytest.fixture(scope="module")
def judge(baseline: GoalBaseline, tmp_path_factory: pytest.TempPathFactory) -> GoalJudge:
    goal = Goal(goal_id="goal", workspace="/", success=SUCCESS, model="", instruction="Mend total.", created=0.0)
    return GoalJudge(goal, read_command(SUCCESS), START, baseline, tmp_path_factory.mktemp("home"))


def _refused(judge: GoalJudge, cheat: Cheat, workspace: Path) -> None:
    judged = judge.judge(lay(workspace, cheat.changes, cheat.programs))
    assert not judged.reached
    assert {flag.rule.split(".")[0] for flag in judged.tampering} & {*cheat.rules}, judged


@pytest.mark.parametrize("cheat", [cheat for cheat in CHEATS if cheat.name in _SAMPLE], ids=lambda cheat: cheat.name)
def test_a_cheat_is_refused_and_named(judge: GoalJudge, cheat: Cheat, tmp_path: Path) -> None:
    _refused(judge, cheat, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cheat", [cheat for cheat in CHEATS if cheat.name not in _SAMPLE], ids=lambda cheat: cheat.name
)
def test_every_cheat_is_refused_and_named(judge: GoalJudge, cheat: Cheat, tmp_path: Path) -> None:
    _refused(judge, cheat, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cheat", [cheat for cheat in CHEATS if "shop.py" not in cheat.changes], ids=lambda cheat: cheat.name
)
def test_a_cheat_beside_honest_work_is_still_one(judge: GoalJudge, cheat: Cheat, tmp_path: Path) -> None:
    judged = judge.judge(lay(tmp_path, {**cheat.changes, "shop.py": MENDED}, cheat.programs))
    assert judged.tampering


def test_honest_work_is_not_accused(judge: GoalJudge, tmp_path: Path) -> None:
    mine = {
        "shop.py": MENDED,
        "tests/test_mine.py": "from shop import total\n\n\ndef test_mine():\n    assert total([1]) == 1\n",
    }
    judged = judge.judge(lay(tmp_path, mine))
    assert judged.reached
    assert judged.tampering == ()
    assert judged.criterion == {
        "exit_code": 0, "collected": 7, "baseline": 7, "passed": 5, "skipped": 1, "xfailed": 1, "deselected": 0,
    }  # fmt: skip
