"""Intervals at 95 %: Wilson's for a share, and the Kaplan-Meier curve of attempts that have not derailed.

An attempt that ends without having derailed says nothing about later steps: it is censored at its last step.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import NamedTuple

Z = 1.959963984540054
ALPHA = 0.05


class Interval(NamedTuple):
    low: float
    high: float


def wilson_interval(passed: int, n: int) -> Interval:
    """Wilson's interval of a share, which also covers well with few samples and at 0 and 1. (0, 1) for no samples."""
    if not 0 <= passed <= n:
        raise ValueError(f"{passed} of {n} samples cannot have passed")
    if n == 0:
        return Interval(0.0, 1.0)
    share, squared = passed / n, Z * Z
    middle = (share + squared / (2 * n)) / (1 + squared / n)
    half = Z / (1 + squared / n) * sqrt(share * (1 - share) / n + squared / (4 * n * n))
    low = 0.0 if passed == 0 else max(0.0, middle - half)
    return Interval(low, 1.0 if passed == n else min(1.0, middle + half))


@dataclass(frozen=True)
class SurvivalObservation:
    """One attempt: the step at which it derailed, or the last step it finished on track."""

    step: int
    derailed: bool


@dataclass(frozen=True)
class SurvivalPoint:
    """`s` is the share of attempts still on track after `step`; `at_risk` is the number that reached it."""

    step: int
    s: float
    low: float
    high: float
    at_risk: int
    derailed: int


def kaplan_meier(attempts: Iterable[SurvivalObservation]) -> list[SurvivalPoint]:
    """The survival share after every step from 1 to the last one reached.

    The interval is Greenwood's on the log-log scale, which stays between 0 and 1. It has no width where no attempt, or
    every attempt, has derailed: there the exact binomial bound of those at risk is used.

    Neither bound ever rises. What is on track after a step was so after every step before it, so an upper bound of an
    earlier step is one of all later steps: where few are left at risk, and at S = 0, the smallest so far is used.
    """
    observations = list(attempts)
    if any(attempt.step < 1 for attempt in observations):
        raise ValueError("steps are counted from 1")
    curve = []
    s, variance, bounds = 1.0, 0.0, Interval(1.0, 1.0)
    for step in range(1, max((attempt.step for attempt in observations), default=0) + 1):
        at_risk = sum(attempt.step >= step for attempt in observations)
        derailed = sum(attempt.step == step and attempt.derailed for attempt in observations)
        s *= 1 - derailed / at_risk
        if derailed < at_risk:
            variance += derailed / (at_risk * (at_risk - derailed))
        here = _interval(s, variance, at_risk)
        bounds = Interval(min(bounds.low, here.low), min(bounds.high, here.high))
        curve.append(SurvivalPoint(step, s, *bounds, at_risk, derailed))
    return curve


def _interval(s: float, variance: float, at_risk: int) -> Interval:
    exact = (ALPHA / 2) ** (1 / at_risk)
    if variance == 0.0 and s == 1.0:
        return Interval(exact, 1.0)
    if s == 0.0:
        return Interval(0.0, 1 - exact)
    width = Z * sqrt(variance) / abs(log(s))
    return Interval(s ** exp(width), s ** exp(-width))
