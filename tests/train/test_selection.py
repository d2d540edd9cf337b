"""The rules of sparse rewards in groups."""

import pytest

from gametape.train.selection import Result, baseline_members, kind_of, missing, with_gradient

PASS, FAIL = Result(1.0, True), Result(0.0, False)
LOST = Result(0.0, False, lost=True)
LONG = Result(0.0, False, overlong=True)


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ([PASS, FAIL, FAIL], "mixed"),
        ([FAIL, FAIL], "all_fail"),
        ([PASS, PASS], "all_pass"),
        ([PASS, LOST, LOST], "lost"),
        ([PASS, PASS, LOST], "all_pass"),
        ([PASS, LONG], "mixed"),
        ([Result(0.2, False), Result(0.4, False)], "mixed"),
        ([], "lost"),
    ],
)
def test_only_differences_carry_a_signal(group: list[Result], kind: str) -> None:
    assert kind_of(group) == kind


def test_what_ran_too_long_counts_for_the_others_and_gets_no_gradient() -> None:
    group = [PASS, LONG, FAIL, LOST]
    assert baseline_members(group) == [0, 1, 2]
    assert with_gradient(group) == [0, 2]


def test_groups_without_a_signal_are_replaced_within_the_budget() -> None:
    assert missing([], wanted=4, most=8) == 4
    assert missing(["mixed", "all_fail"], wanted=4, most=8) == 3
    assert missing(["all_fail"] * 6, wanted=4, most=8) == 2
    assert missing(["all_fail"] * 8, wanted=4, most=8) == 0
    assert missing(["mixed"] * 4, wanted=4, most=8) == 0
