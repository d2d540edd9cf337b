"""Confidence intervals, at 95 %."""

from math import sqrt
from typing import NamedTuple

Z = 1.959963984540054
ALPHA = 0.05


class Interval(NamedTuple):
    low: float
    high: float


def wilson(passed: int, n: int) -> Interval:
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
