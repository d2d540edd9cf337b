"""How far attempts get: the share that has not derailed by each step (Kaplan and Meier), with an interval.

An attempt that ends without having derailed says nothing about later steps: it is censored there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import comb, exp, log, sqrt
from typing import NamedTuple

Z = 1.959963984540054
ALPHA = 0.05


class Interval(NamedTuple):
    low: float
    high: float


def wilson_interval(passed: int, n: int) -> Interval:
    """Wilson's interval of a share: honest with few samples, and at 0 and 1. All of it where there are none."""
    if not 0 <= passed <= n:
        raise ValueError(f"of {n} samples {passed} cannot have passed")
    if n == 0:
        return Interval(0.0, 1.0)
    share, squared = passed / n, Z * Z
    middle = (share + squared / (2 * n)) / (1 + squared / n)
    half = Z / (1 + squared / n) * sqrt(share * (1 - share) / n + squared / (4 * n * n))
    low = 0.0 if passed == 0 else max(0.0, middle - half)
    return Interval(low, 1.0 if passed == n else min(1.0, middle + half))


@dataclass(frozen=True)
class SurvivalObservation:
    """One attempt: the step at which it derailed, or the last one it finished in order."""

    step: int
    derailed: bool


@dataclass(frozen=True)
class SurvivalPoint:
    """`s` is the share of attempts that is still on track after `step`; `at_risk` had got there."""

    step: int
    s: float
    low: float
    high: float
    at_risk: int
    derailed: int


def kaplan_meier(attempts: Iterable[SurvivalObservation]) -> list[SurvivalPoint]:
    """S after every step from 1 to the last one that was reached.

    The interval is Greenwood's on the log-log scale, which never leaves 0 to 1. It has no width where nobody, or
    everybody, has derailed: there the exact binomial bound is taken.
    """
    ended = list(attempts)
    if any(one.step < 1 for one in ended):
        raise ValueError("steps are counted from 1")
    curve = []
    s, variance = 1.0, 0.0
    for step in range(1, max((one.step for one in ended), default=0) + 1):
        at_risk = sum(one.step >= step for one in ended)
        derailed = sum(one.step == step and one.derailed for one in ended)
        s *= 1 - derailed / at_risk
        if derailed < at_risk:
            variance += derailed / (at_risk * (at_risk - derailed))
        curve.append(SurvivalPoint(step, s, *_interval(s, variance, at_risk), at_risk, derailed))
    return curve


def _interval(s: float, variance: float, at_risk: int) -> Interval:
    exact = (ALPHA / 2) ** (1 / at_risk)
    if variance == 0.0 and s == 1.0:
        return Interval(exact, 1.0)
    if s == 0.0:
        return Interval(0.0, 1 - exact)
    width = Z * sqrt(variance) / abs(log(s))
    return Interval(s ** exp(width), s ** exp(-width))


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that at least one of k attempts passes. Undefined, and a `ValueError`, where n < k."""
    _check(n, c, k)
    return 1.0 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The chance that all of k attempts pass. Undefined, and a `ValueError`, where n < k."""
    _check(n, c, k)
    return comb(c, k) / comb(n, k)


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"of {n} attempts between 0 and {max(n, 0)} can have passed, not {c}")
    if not 1 <= k <= n:
        raise ValueError(f"k must lie between 1 and the number of attempts, {n}; it is {k}")
