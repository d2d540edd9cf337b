"""The interquartile mean, its interval and the permutation test, beside figures worked out by hand."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from paired_runs import bootstrap_interval, interquartile_mean, sign_flip_p


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0], 3.0),
        ([1.0, 2.0], 1.5),
        ([0.0, 1.0, 2.0, 90.0], 1.5),
        ([0.0, 1.0, 2.0, 3.0, 100.0], (0.75 * 1 + 2 + 0.75 * 3) / 2.5),
        ([8, 1, 2, 3, 4, 5, 6, 7], 4.5),
    ],
)
def test_the_middle_half_counts_and_its_border_in_part(values: list[float], expected: float) -> None:
    assert interquartile_mean(values) == pytest.approx(expected)


def test_nothing_has_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        interquartile_mean([])


def test_an_interval_holds_the_mean_and_one_value_is_all_of_it() -> None:
    values = [0.61, 0.7, 0.66, 0.9, 0.64]
    low, high = bootstrap_interval(values)
    assert min(values) <= low < interquartile_mean(values) < high <= max(values)
    assert bootstrap_interval(values) == (low, high)
    assert bootstrap_interval([0.5]) == (0.5, 0.5)


def test_signs_are_flipped_in_all_ways() -> None:
    assert sign_flip_p([1.0, 2.0, 3.0, 1.0, 2.0]) == 2 / 32
    assert sign_flip_p([3.0, -1.0]) == 1.0
    assert sign_flip_p([0.0, 0.0, 0.0]) == 1.0
    assert sign_flip_p([]) == 1.0
    assert sign_flip_p([1.0] * 40) == 0.0
