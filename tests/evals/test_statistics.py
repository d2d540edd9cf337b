"""The survival curve and Wilson's interval: published values, and that the interval covers what it says."""

from itertools import pairwise
from math import comb

import pytest

from gametape.evals.statistics import SurvivalObservation, kaplan_meier, wilson_interval

# Remission under 6-MP (Freireich 1963), the example of most textbooks, with Greenwood's interval on the log-log scale.
RELAPSED = [6, 6, 6, 7, 10, 13, 16, 22, 23]
CENSORED = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
PUBLISHED = {6: (0.8571, 0.6197, 0.9516), 10: (0.7529, 0.5032, 0.8894), 23: (0.4482, 0.1881, 0.6801)}


def test_a_published_curve() -> None:
    curve = kaplan_meier(
        [
            *(SurvivalObservation(week, True) for week in RELAPSED),
            *(SurvivalObservation(week, False) for week in CENSORED),
        ]
    )
    assert [point.step for point in curve] == list(range(1, 36))
    for week, expected in PUBLISHED.items():
        point = curve[week - 1]
        assert (point.s, point.low, point.high) == pytest.approx(expected, abs=1e-4)
    assert (curve[5].at_risk, curve[5].derailed, curve[6].at_risk) == (21, 3, 17)


def test_without_any_failure_the_bound_is_the_exact_one() -> None:
    curve = kaplan_meier([SurvivalObservation(4, False)] * 10)
    assert [point.s for point in curve] == [1.0] * 4
    assert curve[-1].low == pytest.approx(0.6915, abs=1e-4)  # Clopper and Pearson for 10 of 10
    assert curve[-1].high == 1.0


def test_when_all_have_failed_the_curve_stays_at_zero_with_an_upper_bound() -> None:
    last = kaplan_meier([SurvivalObservation(2, True)] * 10)[-1]
    assert (last.s, last.low) == (0.0, 0.0)
    assert last.high == pytest.approx(0.3085, abs=1e-4)


def test_no_bound_ever_rises_and_all_hold_the_curve() -> None:
    """At the end few are at risk: Greenwood's upper bound rises there, and the exact one at S = 0 is .975."""
    courses = [
        [SurvivalObservation(step, True) for step in range(1, 12)],
        [*(SurvivalObservation(step % 5 + 1, True) for step in range(50)), SurvivalObservation(9, True)],
        [
            *(SurvivalObservation(3, True),) * 50,
            *(SurvivalObservation(4, False),) * 48,
            *(SurvivalObservation(5, True),) * 2,
        ],
        [SurvivalObservation(2, False), SurvivalObservation(4, True)],
        [SurvivalObservation(4, True)],
    ]
    for attempts in courses:
        curve = kaplan_meier(attempts)
        for earlier, later in pairwise(curve):
            assert later.low <= earlier.low
            assert later.high <= earlier.high
        assert all(0 <= point.low <= point.s <= point.high <= 1 for point in curve)
    assert kaplan_meier(courses[1])[-1].high < 0.2
    assert kaplan_meier(courses[-1])[-1].high == pytest.approx(0.975)


def test_there_may_be_nothing_to_say() -> None:
    assert kaplan_meier([]) == []
    with pytest.raises(ValueError, match="from 1"):
        kaplan_meier([SurvivalObservation(0, False)])


def test_published_values() -> None:
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)  # Newcombe 1998, table I, method 3
    assert wilson_interval(15, 148) == pytest.approx((0.0624, 0.1605), abs=1e-4)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert wilson_interval(1, 29) == pytest.approx((0.0061, 0.1718), abs=1e-4)
    assert wilson_interval(20, 20)[1] == 1.0
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9])
def test_it_covers_the_truth_about_as_often_as_it_says(share: float) -> None:
    n = 50
    chances = [comb(n, passed) * share**passed * (1 - share) ** (n - passed) for passed in range(n + 1)]
    covered = sum(
        chance
        for passed, chance in enumerate(chances)
        if wilson_interval(passed, n)[0] <= share <= wilson_interval(passed, n)[1]
    )
    assert covered > 0.92


def test_more_than_all_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot have passed"):
        wilson_interval(3, 2)
