"""The posterior is exact."""

from random import Random

import pytest

from gametape.coach.posterior import SuccessCount, probability_of_gain


def test_without_a_fork_nothing_is_known():
    assert probability_of_gain(SuccessCount(), SuccessCount()) == pytest.approx(0.5)


@pytest.mark.parametrize(("before", "after"), [((0, 16), (12, 16)), ((3, 9), (5, 7)), ((16, 16), (1, 16))])
def test_it_agrees_with_sampling(before, after):
    rng = Random(0)
    draws = 20_000

    def drawn(good, trials):
        return rng.betavariate(good + 1, trials - good + 1)

    share = sum(drawn(*after) > drawn(*before) for _ in range(draws)) / draws
    exact = probability_of_gain(SuccessCount(*before), SuccessCount(*after))
    assert exact == pytest.approx(share, abs=0.015)
    assert probability_of_gain(SuccessCount(*after), SuccessCount(*before)) == pytest.approx(1 - exact, abs=1e-9)


def test_large_counts_are_fine():
    assert probability_of_gain(SuccessCount(4000, 9000), SuccessCount(5000, 9000)) > 0.999
