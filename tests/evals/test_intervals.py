"""Wilson's interval: published values, and that it covers what it says it does."""

from math import comb

import pytest

from gametape.evals.statistics import wilson_interval


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
