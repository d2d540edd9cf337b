"""Whether one arm did better than another, said so that it cannot be read as more than was measured."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

from gametape.evals.statistics import wilson_interval

_EQUAL = 0.1
"""Budgets are looked at between updates: up to such a share they count as equal."""


@dataclass(frozen=True)
class ArmComparison:
    """The difference of two arms' last held-out success, with its interval at 95 % (Newcombe's)."""

    gain: float
    low: float
    high: float
    gained: bool
    said: str


def compare_scores(base: dict[str, Any], other: dict[str, Any], base_name: str, other_name: str) -> ArmComparison:
    """From the last score of each. Only a gain that the number of held-out episodes can tell from none counts."""
    (share, n), (base_share, base_n) = _of(other), _of(base)
    one, two = wilson_interval(round(share * n), n), wilson_interval(round(base_share * base_n), base_n)
    gain = share - base_share
    low = gain - sqrt((share - one.low) ** 2 + (two.high - base_share) ** 2)
    high = gain + sqrt((one.high - share) ** 2 + (base_share - two.low) ** 2)
    range_said = f"95 % interval {100 * low:+.1f} to {100 * high:+.1f}, {n} held-out episodes"
    if low > 0:
        said = f"{other_name} ended {100 * gain:.1f} points above {base_name} ({range_said})"
    elif high < 0:
        said = f"{other_name} did not gain over {base_name} in this run: {-100 * gain:.1f} points below ({range_said})"
    else:
        said = (
            f"{other_name} did not gain over {base_name} in this run: "
            f"{100 * gain:+.1f} points is within the noise ({range_said})"
        )
    return ArmComparison(gain, low, high, low > 0, f"{said}, {_compute(base, other)}.")


def _of(score: dict[str, Any]) -> tuple[float, int]:
    return float(score["success"]), int(score["episodes"])


def _compute(base: dict[str, Any], other: dict[str, Any]) -> str:
    ratio = other["flops"] / base["flops"] if base.get("flops") else None
    if ratio is None:
        return "compute not recorded"
    return "at equal compute" if abs(ratio - 1) <= _EQUAL else f"with {ratio:.2f} times the compute"
