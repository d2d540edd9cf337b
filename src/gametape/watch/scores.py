"""How good forecasts are: Brier score, skill against the base rate, AUROC, and calibration error, with intervals.

Calibration error is taken over bins of equal mass. It is never zero: a perfect forecaster's own, on so many outcomes,
is told beside it, and only what lies above that says anything.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

_BINS = 10
_RESAMPLES = 400

Pairs = Sequence[tuple[float, bool]]
"""What was forecast, and what happened."""


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Scores:
    """`skill` and `auroc` are None where everything came out the same: there is nothing to tell apart."""

    n: int
    base_rate: float
    brier: Estimate
    skill: Estimate | None
    auroc: Estimate | None
    ece: Estimate
    ece_if_perfect: float

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def score(pairs: Pairs, seed: int = 0) -> Scores:
    """Of at least one forecast."""
    rng = random.Random(seed)
    n = len(pairs)
    resamples = [[pairs[rng.randrange(n)] for _ in range(n)] for _ in range(_RESAMPLES)]
    drawn = [[(p, rng.random() < p) for p, _ in pairs] for _ in range(_RESAMPLES // 4)]
    return Scores(
        n=n,
        base_rate=sum(happened for _, happened in pairs) / n,
        brier=_estimated(brier, pairs, resamples),
        skill=_estimated_where_possible(skill, pairs, resamples),
        auroc=_estimated_where_possible(auroc, pairs, resamples),
        ece=_estimated(equal_mass_ece, pairs, resamples),
        ece_if_perfect=sum(map(equal_mass_ece, drawn)) / len(drawn),
    )


def brier(pairs: Pairs) -> float:
    return sum((p - happened) ** 2 for p, happened in pairs) / len(pairs)


def skill(pairs: Pairs) -> float | None:
    """1 is perfect, 0 is no better than always saying the base rate."""
    rate = sum(happened for _, happened in pairs) / len(pairs)
    return 1 - brier(pairs) / (rate * (1 - rate)) if 0 < rate < 1 else None


def auroc(pairs: Pairs) -> float | None:
    """The chance that a success was given a higher forecast than a failure; ties count half."""
    successes = sum(happened for _, happened in pairs)
    failures = len(pairs) - successes
    if not successes or not failures:
        return None
    ordered = sorted(pairs)
    ranks, at = 0.0, 0
    while at < len(ordered):
        end = at
        while end < len(ordered) and ordered[end][0] == ordered[at][0]:
            end += 1
        ranks += sum(happened for _, happened in ordered[at:end]) * (at + 1 + end) / 2
        at = end
    return (ranks - successes * (successes + 1) / 2) / (successes * failures)


def equal_mass_ece(pairs: Pairs) -> float:
    """The mean distance of forecast and frequency over ten bins that hold the same number of forecasts."""
    ordered = sorted(pairs, key=lambda pair: pair[0])
    n, bins = len(ordered), min(_BINS, len(ordered))
    edges = [round(index * n / bins) for index in range(bins + 1)]
    gaps = (sum(p - happened for p, happened in ordered[a:b]) for a, b in pairwise(edges))
    return sum(map(abs, gaps)) / n


def _estimated(measure: Callable[[Pairs], float], pairs: Pairs, resamples: Sequence[Pairs]) -> Estimate:
    """Of an error, never below 0. Resampling adds noise and noise adds calibration error, which is taken off."""
    value = measure(pairs)
    values = sorted(map(measure, resamples))
    bias = sum(values) / len(values) - value
    low, high = _middle(values)
    return Estimate(value, max(0.0, low - bias), high - bias)


def _estimated_where_possible(
    measure: Callable[[Pairs], float | None], pairs: Pairs, resamples: Sequence[Pairs]
) -> Estimate | None:
    value = measure(pairs)
    if value is None:
        return None
    return Estimate(value, *_middle(sorted(found for found in map(measure, resamples) if found is not None)))


def _middle(ordered: Sequence[float]) -> tuple[float, float]:
    last = len(ordered) - 1
    return ordered[round(0.025 * last)], ordered[round(0.975 * last)]
