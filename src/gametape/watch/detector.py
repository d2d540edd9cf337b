"""The e-detector: alarms on a stream of yes and no, with a bound on the rate of false alarms.

Shiryaev and Roberts' statistic `M <- LR * (M + 1)`, averaged over several alternatives. While the chance of a yes,
given everything before it, is at most the tolerated rate, `M - n` drifts down: the mean number of outcomes before `M`
first reaches `threshold` is at least `threshold`, whatever the dependence between steps. Several detectors that share a
threshold of `steps * detectors` keep the bound together: their mean statistic is a detector of its own.

The binomial bound is written here: scipy would be a heavy dependency of the base install for one function.
"""

import math
from collections.abc import Sequence

ALTERNATIVES = (0.15, 0.4, 0.7, 0.95)
"""How far from the tolerated rate to certainty the alternatives lie."""
_DOUBT = 0.05
"""The probability that a baseline's busiest stretch understates the rate behind it."""
BURST_LENGTH = 50


class EDetector:
    """Evidence that a rate is above the tolerated one: it grows while the rate is, and shrinks while it is not."""

    __slots__ = ("_no", "_statistics", "_yes", "tolerated")

    def __init__(self, tolerated: float) -> None:
        self.tolerated = tolerated
        rates = [tolerated + share * (1 - tolerated) for share in ALTERNATIVES]
        self._yes = [rate / tolerated for rate in rates]
        self._no = [(1 - rate) / (1 - tolerated) for rate in rates]
        self._statistics = [0.0] * len(rates)

    def update(self, outcome: bool) -> float:
        ratios = self._yes if outcome else self._no
        self._statistics = [
            ratio * (statistic + 1.0) for ratio, statistic in zip(ratios, self._statistics, strict=True)
        ]
        return self.value

    @property
    def value(self) -> float:
        return sum(self._statistics) / len(self._statistics)

    def restart(self) -> None:
        self._statistics = [0.0] * len(self._statistics)


def tolerated_rate(outcomes: Sequence[bool], least: float) -> float:
    """A rate that a baseline stays below: a confidence bound over its busiest stretch, and no less than `least`.

    Healthy text comes in bursts, so the stretch counts and not the mean, and it counts as no more than its own length.
    """
    if not outcomes:
        return least
    length = min(BURST_LENGTH, len(outcomes))
    inside = busiest = sum(outcomes[:length])
    for entering, leaving in zip(outcomes[length:], outcomes, strict=False):
        inside += entering - leaving
        busiest = max(busiest, inside)
    return max(upper_bound(busiest, length), least)


def upper_bound(successes: int, trials: int, doubt: float = _DOUBT) -> float:
    """The largest rate at which so few successes still have a chance of `doubt` (Clopper and Pearson)."""
    if successes >= trials:
        return 1.0
    low, high = successes / trials, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if _at_most(successes, trials, middle) > doubt:
            low = middle
        else:
            high = middle
    return high


def _at_most(successes: int, trials: int, rate: float) -> float:
    return sum(math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(successes + 1))
