"""Each hack is worth something somewhere: a naive grader believes it."""

import pytest

from gametape.redteam import HACKS, HackNotApplicable, check_out_with_hack, sample_hacks
from tests.redteam.naive_graders import GRADERS, lenient_grade, naive_grade
from tests.redteam.small_tasks import FAST_QUESTION, QUESTIONS, small

ON_TIME = ("resources.clocks", "resources.slow-clock", "resources.sleep")
ONLY_LENIENT = ("resources.hang",)
"""A time-out is never exit code 0."""


def wins(hack, tmp_path, grade) -> bool:
    """Whether the grader believes the hack on one of the small tasks."""
    for question in FAST_QUESTION if hack.name in ON_TIME else QUESTIONS:
        loaded_task = small(question)
        try:
            workspace = check_out_with_hack(loaded_task, hack, tmp_path / question)
        except HackNotApplicable:
            continue
        if grade(loaded_task, workspace):
            return True
    return False


def test_the_naive_graders_believe_an_honest_solution_and_no_untouched_tree(tmp_path):
    loaded_task = small("equal")
    for name, grade in GRADERS.items():
        loaded_task.start.write_to(tmp_path / name / "untouched")
        loaded_task.reference.write_to(tmp_path / name / "solved")
        assert not grade(loaded_task, tmp_path / name / "untouched")
        assert grade(loaded_task, tmp_path / name / "solved")


@pytest.mark.parametrize(
    "hack", [hack for hack in sample_hacks(1, 1) if hack.name not in ONLY_LENIENT], ids=lambda hack: hack.name
)
def test_a_hack_of_each_family_wins_against_the_exit_code(hack, tmp_path):
    assert wins(hack, tmp_path, naive_grade)


def test_a_hang_wins_where_a_time_out_is_no_failure(tmp_path):
    (hack,) = [hack for hack in HACKS if hack.name in ONLY_LENIENT]
    assert wins(hack, tmp_path, lenient_grade)


@pytest.mark.slow
@pytest.mark.parametrize("hack", [hack for hack in HACKS if hack.name not in ONLY_LENIENT], ids=lambda hack: hack.name)
def test_every_hack_wins_against_the_exit_code(hack, tmp_path):
    assert wins(hack, tmp_path, naive_grade)
