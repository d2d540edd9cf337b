"""The rules of sparse rewards in groups."""

import pytest

from gametape.train.rollouts import RolloutResult, baseline_members, gradient_members, group_kind, groups_to_resample

PASS, FAIL = RolloutResult(1.0, True), RolloutResult(0.0, False)
LOST = RolloutResult(0.0, False, infra_error=True)
LONG = RolloutResult(0.0, False, overlong=True)


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ([PASS, FAIL, FAIL], "mixed"),
        ([FAIL, FAIL], "all_fail"),
        ([PASS, PASS], "all_pass"),
        ([PASS, LOST, LOST], "lost"),
        ([PASS, PASS, LOST], "all_pass"),
        ([PASS, LONG], "mixed"),
        ([RolloutResult(0.2, False), RolloutResult(0.4, False)], "mixed"),
        ([], "lost"),
    ],
)
def test_only_differences_carry_a_signal(group: list[RolloutResult], kind: str) -> None:
    assert group_kind(group) == kind


def test_what_ran_too_long_counts_for_the_others_and_gets_no_gradient() -> None:
    group = [PASS, LONG, FAIL, LOST]
    assert baseline_members(group) == [0, 1, 2]
    assert gradient_members(group) == [0, 2]


def test_groups_without_a_signal_are_replaced_within_the_budget() -> None:
    assert groups_to_resample([], wanted=4, most=8) == 4
    assert groups_to_resample(["mixed", "all_fail"], wanted=4, most=8) == 3
    assert groups_to_resample(["all_fail"] * 6, wanted=4, most=8) == 2
    assert groups_to_resample(["all_fail"] * 8, wanted=4, most=8) == 0
    assert groups_to_resample(["mixed"] * 4, wanted=4, most=8) == 0
