"""What a few runs say about two ways to train: the interquartile mean with its bootstrap interval, and a permutation
test of paired differences. A seed is a pair: it gives both runs the same prompts."""

from collections.abc import Callable, Sequence
from itertools import product
from random import Random
from statistics import mean

from gametape.evals.statistics import ALPHA, Interval

_RESAMPLES = 10_000
_EXACT = 16
"""Up to so many pairs all patterns of signs are looked at; beyond that as many as are drawn of resamples."""
_SLACK = 1e-12


def interquartile_mean(values: Sequence[float]) -> float:
    """The mean of the middle half; values on its border count in part."""
    if not values:
        raise ValueError("no values have no interquartile mean")
    ordered, quarter = sorted(values), len(values) / 4
    total = 0.0
    for at, value in enumerate(ordered):
        total += value * max(0.0, min(at + 1, len(ordered) - quarter) - max(at, quarter))
    return total / (len(ordered) - 2 * quarter)


def bootstrap_interval(
    values: Sequence[float], statistic: Callable[[Sequence[float]], float] = interquartile_mean, seed: int = 0
) -> Interval:
    """The percentile interval at 95 % over values drawn with replacement. One value has no spread to speak of: (that
    value, that value)."""
    rng = Random(seed)
    found = sorted(statistic(rng.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    cut = round(ALPHA / 2 * _RESAMPLES)
    return Interval(found[cut], found[-1 - cut])


def sign_flip_p(differences: Sequence[float], seed: int = 0) -> float:
    """How often chance, which could as well have changed the sign of each paired difference, gives a mean as far from
    0. Two-sided; n pairs cannot give less than 2 / 2^n."""
    if not differences:
        return 1.0
    found = abs(mean(differences)) - _SLACK
    if len(differences) <= _EXACT:
        patterns = list(product((1, -1), repeat=len(differences)))
    else:
        rng = Random(seed)
        patterns = [tuple(rng.choice((1, -1)) for _ in differences) for _ in range(_RESAMPLES)]
    means = (mean(sign * value for sign, value in zip(signs, differences, strict=True)) for signs in patterns)
    return sum(abs(one) >= found for one in means) / len(patterns)
