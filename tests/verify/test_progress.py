"""Progress: what tests and fresh calls are worth together, measured from what no work earns."""

import pytest

from gametape.core.verdict import FreshCalls, TestCounts
from gametape.verify.progress import (
    ProgressCounts,
    above_floor,
    agrees_enough,
    fresh_gap,
    fresh_share,
    group_progress,
    harmonic_mean,
)


def counts(visible: tuple[int, int], held_out: tuple[int, int] = (0, 0)) -> TestCounts:
    """(passed, expected) of both."""
    return TestCounts(
        expected=visible[1] + held_out[1],
        passed=visible[0] + held_out[0],
        held_out_expected=held_out[1],
        held_out_passed=held_out[0],
    )


def fresh(agreed: int, calls: int = 20) -> FreshCalls:
    return FreshCalls(calls=calls, agreed=agreed)


def test_the_mean_is_over_what_is_there_and_one_zero_is_enough() -> None:
    assert harmonic_mean([0.5, None, 0.5]) == 0.5
    assert harmonic_mean([1.0, 1.0, 0.5]) == pytest.approx(0.75)
    assert harmonic_mean([1.0, 1.0, 0.0]) == 0.0
    assert harmonic_mean([None]) == harmonic_mean([]) == 0.0


def test_a_table_of_the_answers_ends_at_fresh_calls() -> None:
    everything = counts((4, 4), (4, 4))
    assert ProgressCounts(everything).raw == 1.0
    assert ProgressCounts(everything, fresh=fresh(20)).raw == 1.0
    assert ProgressCounts(everything, fresh=fresh(0)).raw == 0.0
    assert ProgressCounts(counts((4, 4), (0, 4)), fresh=fresh(20)).raw == 0.0


def test_a_right_solution_may_differ_in_a_few_corners() -> None:
    assert fresh_share(fresh(18)) == 1.0
    assert fresh_share(fresh(10)) == pytest.approx(0.5)
    assert agrees_enough(fresh(15))
    assert not agrees_enough(fresh(14))


def test_what_a_guess_agrees_on_by_luck_is_nothing() -> None:
    assert fresh_share(fresh(2)) == 0.0
    assert fresh_share(fresh(3)) == pytest.approx(0.0625)
    assert fresh_share(fresh(1, calls=6)) == 0.0, "one call is luck, however few there are"
    assert fresh_share(fresh(2, calls=4)) == pytest.approx(1 / 2.6)
    assert ProgressCounts(counts((4, 4), (4, 4)), fresh=fresh(2)).raw == 0.0


def test_visible_tests_count_for_no_more_than_what_nobody_could_read() -> None:
    half = ProgressCounts(counts((4, 4), (1, 4)), fresh=fresh(10))
    assert half.raw == pytest.approx(harmonic_mean([0.5, 0.25, 0.5]))
    assert half.describe(0.0).endswith("the visible ones count for no more than the better of the others")
    assert ProgressCounts(counts((1, 4), (4, 4)), fresh=fresh(18)).raw == pytest.approx(0.5)
    assert ProgressCounts(counts((2, 4))).raw == 0.5


def test_too_few_fresh_calls_decide_nothing() -> None:
    few = fresh(0, calls=3)
    assert fresh_share(few) is None
    assert agrees_enough(few)
    assert agrees_enough(None)
    assert ProgressCounts(counts((4, 4)), fresh=few).raw == 1.0


def test_tests_in_one_process_with_the_code_take_away_and_never_add() -> None:
    half = counts((2, 4), (2, 4))
    assert ProgressCounts(half, counts((4, 4))).raw == ProgressCounts(half).raw == 0.5
    assert ProgressCounts(half, counts((2, 4))).raw == 0.25
    assert ProgressCounts(counts((0, 4), (0, 4)), counts((4, 4))).raw == 0.0


def test_the_floor_is_the_zero_of_the_scale() -> None:
    assert above_floor(0.4, 0.4) == above_floor(0.1, 0.4) == 0.0
    assert above_floor(0.7, 0.4) == pytest.approx(0.5)
    assert above_floor(1.0, 0.4) == 1.0
    assert above_floor(1.0, 1.0) == 0.0


def test_a_group_without_held_out_tests_does_not_pay_for_visible_ones_alone() -> None:
    whole = ProgressCounts(counts((4, 4), (0, 9)))
    assert group_progress(counts((4, 4)), whole) == 0.0
    assert group_progress(counts((0, 0), (0, 9)), whole) == 0.0
    honest = ProgressCounts(counts((4, 4), (9, 9)))
    assert group_progress(counts((4, 4)), honest) == 1.0
    assert group_progress(counts((2, 4), (1, 2)), honest) == 0.5
    assert group_progress(counts((4, 4)), ProgressCounts(honest.deciding, fresh=fresh(0))) == 0.0


def test_a_gap_to_fresh_calls_is_said() -> None:
    everything = counts((4, 4), (4, 4))
    signal = fresh_gap(everything, fresh(5))
    assert signal is not None
    assert signal.name == "fresh gap"
    assert signal.detail == "8 of 8 tests of the feature passed, and 5 of 20 fresh calls agreed"
    assert fresh_gap(everything, fresh(18)) is None
    assert fresh_gap(counts((1, 4), (1, 4)), fresh(5)) is None
    assert fresh_gap(everything, None) is None


def test_progress_can_be_computed_from_its_description() -> None:
    honest = ProgressCounts(counts((7, 9), (4, 7)), counts((3, 4)), fresh(16))
    assert honest.describe(0.1) == (
        "harmonic mean of 7 of 9 visible, 4 of 7 held out, 16 of 20 fresh (nothing up to 2, whole at 18); "
        "times 3 of 4 that confirm; measured from 0.10, which a trivial program earns"
    )
    mean = 3 / (9 / 7 + 7 / 4 + 0.8 / (16 / 20 - 0.1))
    assert honest.above(0.1) == pytest.approx((mean * 3 / 4 - 0.1) / 0.9)
    assert ProgressCounts(counts((1, 2))).describe(0.0) == "harmonic mean of 1 of 2 visible"
