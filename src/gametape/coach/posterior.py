"""The probability that one success rate is above another, from counts."""

from dataclasses import dataclass
from math import exp, lgamma, log


@dataclass(frozen=True)
class SuccessCount:
    """Successes among trials. Two of them add up."""

    good: int = 0
    trials: int = 0

    def __add__(self, other: "SuccessCount") -> "SuccessCount":
        return SuccessCount(self.good + other.good, self.trials + other.trials)

    def __str__(self) -> str:
        return f"{self.good}/{self.trials}"

    @property
    def log_odds(self) -> float:
        """With half a success and half a failure more than there were, so that it is always a number."""
        return log((self.good + 0.5) / (self.trials - self.good + 0.5))


NO_TRIALS = SuccessCount()


def success_count(outcomes: list[bool]) -> SuccessCount:
    return SuccessCount(sum(outcomes), len(outcomes))


def probability_of_gain(before: SuccessCount, after: SuccessCount) -> float:
    """P(the second rate is above the first), both with a uniform prior, exactly: the sum over the ways in which the
    second of two Beta variables with whole parameters comes out above the first."""
    a, b = before.good + 1, before.trials - before.good + 1
    c, d = after.good + 1, after.trials - after.good + 1
    terms = (exp(_log_beta(a + i, b + d) - log(d + i) - _log_beta(1 + i, d) - _log_beta(a, b)) for i in range(c))
    return min(1.0, sum(terms))


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
