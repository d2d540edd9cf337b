"""Kept rollouts over time: by the weights that sampled them where all say which, else by when their files changed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gametape.studio.web.rollout_table import FoundFlag, RolloutFacts

MOST_PERIODS = 12


@dataclass(frozen=True)
class RolloutPeriod:
    """`at` is where it begins: a version of the weights, or minutes since the first file."""

    at: float
    label: str
    facts: Sequence[RolloutFacts]

    @property
    def passed(self) -> int:
        return sum(fact.outcome == "passed" for fact in self.facts)

    def flags_of(self, rule: str) -> list[FoundFlag]:
        return [flag for fact in self.facts for flag in fact.flags if flag.rule == rule]


@dataclass(frozen=True)
class RolloutTimeline:
    periods: Sequence[RolloutPeriod]
    unit: str
    """What `at` counts."""

    @property
    def rules(self) -> list[str]:
        """The most frequent first."""
        counts = Counter(flag.rule for period in self.periods for fact in period.facts for flag in fact.flags)
        return [rule for rule, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]


def timeline(facts: Sequence[RolloutFacts]) -> RolloutTimeline:
    """At most `MOST_PERIODS` of equal length; those without a rollout are left out."""
    read = [fact for fact in facts if not fact.problem]
    versions = [fact.version for fact in read if fact.version is not None]
    by_version = bool(read) and len(versions) == len(read)
    times = [float(version) for version in versions] if by_version else [fact.changed for fact in read]
    first, last = min(times, default=0.0), max(times, default=0.0)
    length = max((last - first + by_version) / MOST_PERIODS, 1.0)
    placed: dict[int, list[RolloutFacts]] = {}
    for fact, time in zip(read, times, strict=True):
        placed.setdefault(min(int((time - first) / length), MOST_PERIODS - 1), []).append(fact)
    periods = []
    for place, those in sorted(placed.items()):
        begin = first + place * length
        at = begin if by_version else (begin - first) / 60
        periods.append(RolloutPeriod(at, _version_label(those) if by_version else _time_label(begin), those))
    return RolloutTimeline(periods, "version of the weights" if by_version else "minutes since the first")


def _version_label(facts: Sequence[RolloutFacts]) -> str:
    versions = [fact.version or 0 for fact in facts]
    low, high = min(versions), max(versions)
    return f"weights {low}" if low == high else f"weights {low} to {high}"


def _time_label(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%d %b %H:%M:%S}"
