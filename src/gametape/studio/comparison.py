"""Compare the held-out success of two arms, and say in one sentence what was measured."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

from gametape.evals.statistics import wilson_interval

_EQUAL = 0.1
"""Compute budgets that differ by at most this share count as equal; they are checked between updates only."""


@dataclass(frozen=True)
class ArmComparison:
    """The difference of two arms' last held-out success, with its interval at 95 % (Newcombe's)."""

    gain: float
    low: float
    high: float
    gained: bool
    sentence: str


def compare_scores(base: dict[str, Any], other: dict[str, Any], base_name: str, other_name: str) -> ArmComparison:
    """Compare the last scores. A gain counts only if its interval lies above zero."""
    (share, n), (base_share, base_n) = _success(other), _success(base)
    interval = wilson_interval(round(share * n), n)
    base_interval = wilson_interval(round(base_share * base_n), base_n)
    gain = share - base_share
    low = gain - sqrt((share - interval.low) ** 2 + (base_interval.high - base_share) ** 2)
    high = gain + sqrt((interval.high - share) ** 2 + (base_share - base_interval.low) ** 2)
    range_text = f"95 % interval {100 * low:+.1f} to {100 * high:+.1f}, {n} held-out episodes"
    no_gain = f"{other_name} did not gain over {base_name} in this run"
    if low > 0:
        sentence = f"{other_name} ended {100 * gain:.1f} points above {base_name} ({range_text})"
    elif high < 0:
        sentence = f"{no_gain}: {-100 * gain:.1f} points below ({range_text})"
    else:
        sentence = f"{no_gain}: {100 * gain:+.1f} points is within the noise ({range_text})"
    return ArmComparison(gain, low, high, low > 0, f"{sentence}, {_compute(base, other)}.")


def _success(score: dict[str, Any]) -> tuple[float, int]:
    return float(score["success"]), int(score["episodes"])


def _compute(base: dict[str, Any], other: dict[str, Any]) -> str:
    ratio = other["flops"] / base["flops"] if base.get("flops") else None
    if ratio is None:
        return "compute not recorded"
    return "at equal compute" if abs(ratio - 1) <= _EQUAL else f"with {ratio:.2f} times the compute"
