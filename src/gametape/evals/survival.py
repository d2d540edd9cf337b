"""How far attempts get: the share that has not derailed by each step (Kaplan and Meier), with an interval.

An attempt that ends without having derailed says nothing about later steps: it is censored there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log, sqrt

from gametape.evals.intervals import ALPHA, Interval, Z


@dataclass(frozen=True)
class Ended:
    """One attempt: the step at which it derailed, or the last one it finished in order."""

    step: int
    derailed: bool


@dataclass(frozen=True)
class Survival:
    """`s` is the share of attempts that is still on track after `step`; `at_risk` had got there."""

    step: int
    s: float
    low: float
    high: float
    at_risk: int
    derailed: int


def kaplan_meier(attempts: Iterable[Ended]) -> list[Survival]:
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
        curve.append(Survival(step, s, *_interval(s, variance, at_risk), at_risk, derailed))
    return curve


def _interval(s: float, variance: float, at_risk: int) -> Interval:
    exact = (ALPHA / 2) ** (1 / at_risk)
    if variance == 0.0 and s == 1.0:
        return Interval(exact, 1.0)
    if s == 0.0:
        return Interval(0.0, 1 - exact)
    width = Z * sqrt(variance) / abs(log(s))
    return Interval(s ** exp(width), s ** exp(-width))
