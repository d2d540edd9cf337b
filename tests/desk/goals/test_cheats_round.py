"""Rounds of attempts by somebody who has read the source: cheats are refused or told, and honest work is not accused.

A cheat that is marked `xfail` gets through: the goal is reached, and what a reader is told is what he would be told of
honest work. Honest work that is marked so is refused or accused.
"""

from pathlib import Path

import pytest

from tests.desk.goals.checker_cheats import COMMAND_CHEATS
from tests.desk.goals.fifth_round import FIFTH_CHEATS, FIFTH_HONEST, LOWER_CHEATS
from tests.desk.goals.fourth_honest import FOURTH_HONEST
from tests.desk.goals.fourth_round import FOURTH_CHEATS
from tests.desk.goals.fourth_tables import FOURTH_TABLES
from tests.desk.goals.goal_attempts import TABLE_TOLD, Attempt, judge_attempt
from tests.desk.goals.honest_work import HONEST
from tests.desk.goals.pytest_cheats import PYTEST_CHEATS
from tests.desk.goals.second_round import SECOND_CHEATS

_SAMPLE = (
    "the id of the parametrised test", "other line ends, and attributes for them", "data that the product gets",
    "a flag that a script only looks at, removed", "a shell program with a library of its own",
    "the first file of the package that has its own check",
    "a flag of the product that switches its tests off", "a result that is a link to the golden file",
    "a target that the product makes", "a function of a sourced library in the place of a program",
    "an included makefile with the sources of the product", "a stale result in a directory of results",
    "tests of unittest that follow a new name",
)  # fmt: skip
_CHEATS = (
    *PYTEST_CHEATS,
    *COMMAND_CHEATS,
    *SECOND_CHEATS,
    *FOURTH_CHEATS,
    *FOURTH_TABLES,
    *FIFTH_CHEATS,
    *LOWER_CHEATS,
)
_HONEST = (*HONEST, *FOURTH_HONEST, *FIFTH_HONEST)


def _marked(attempt: Attempt) -> object:
    marks = [] if attempt.name in _SAMPLE else [pytest.mark.slow]
    if attempt.fails:
        marks.append(pytest.mark.xfail(strict=True, reason=attempt.fails))
    return pytest.param(attempt, id=attempt.name, marks=marks)


@pytest.mark.parametrize("attempt", [*map(_marked, _CHEATS)])
def test_a_cheat_is_refused_or_told(attempt: Attempt, tmp_path: Path) -> None:
    judged, detail = judge_attempt(attempt, tmp_path)
    assert not judged.reached or any(word in detail for word in attempt.told), detail


@pytest.mark.parametrize("attempt", [*map(_marked, _HONEST)])
def test_honest_work_is_reached_and_not_accused(attempt: Attempt, tmp_path: Path) -> None:
    judged, detail = judge_attempt(attempt, tmp_path)
    assert judged.tampering == (), judged
    assert judged.reached, (judged, detail)
    assert TABLE_TOLD not in detail
