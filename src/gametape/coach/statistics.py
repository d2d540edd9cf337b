"""Statistics of each type of hint: how often it was located, how it passed its gates, and whether a gap is left.

Plain data, so that a run can store it in its checkpoints.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self, TypeVar

from pydantic import TypeAdapter

from gametape.coach.gates import ForkTrial
from gametape.core.hint import Hint, HintGates

T = TypeVar("T")

_RECENT = 32
"""How many measured gaps of a type are kept: those of the latest policies."""
_ENOUGH = 16
CLOSED_GAP = 0.5
"""Log-odds: a type whose mean gap is below this has nothing left to teach."""


@dataclass
class HintTypeStatistics:
    located: int = 0
    used: int = 0
    run: dict[str, int] = field(default_factory=dict)
    """By gate: how often it was run; `passed` has how often it was passed."""
    passed: dict[str, int] = field(default_factory=dict)
    gaps: list[float] = field(default_factory=list)
    """Student's minus teacher's log-odds of what was done wrong, the latest last."""
    trial: ForkTrial = field(default_factory=ForkTrial)
    tried_by: int = 0
    """The weights that played the forks."""

    @property
    def gap(self) -> float | None:
        return sum(self.gaps) / len(self.gaps) if self.gaps else None

    @property
    def retired(self) -> bool:
        """Whether the latest measurements say that the gap has closed. If it opens again, the type returns."""
        return len(self.gaps) >= _ENOUGH and sum(self.gaps) / len(self.gaps) < CLOSED_GAP

    def record_gap(self, gap: float) -> None:
        self.gaps = [*self.gaps, gap][-_RECENT:]

    def with_news(self, before: "HintTypeStatistics", after: "HintTypeStatistics") -> "HintTypeStatistics":
        """These, and what has come between two states of another coach's. Of two trials the later one counts."""
        newer = (after.tried_by, after.trial.forks) >= (self.tried_by, self.trial.forks)
        latest = after if after.trial != before.trial and newer else self
        return HintTypeStatistics(
            located=self.located + after.located - before.located,
            used=self.used + after.used - before.used,
            run=_with_news(self.run, before.run, after.run),
            passed=_with_news(self.passed, before.passed, after.passed),
            gaps=[*self.gaps, *appended(before.gaps, after.gaps)][-_RECENT:],
            trial=latest.trial,
            tried_by=latest.tried_by,
        )


@dataclass
class HintStatistics:
    """By type of hint."""

    types: dict[str, HintTypeStatistics] = field(default_factory=dict)

    def for_type(self, kind: str) -> HintTypeStatistics:
        return self.types.setdefault(kind, HintTypeStatistics())

    def record(self, kind: str, gates: HintGates, used: bool) -> None:
        """Count one more hint of this type, after its gates."""
        counts = self.for_type(kind)
        counts.located += 1
        counts.used += used
        _count_gates(gates, counts.run, counts.passed)

    def with_news(self, before: "HintStatistics", after: "HintStatistics") -> "HintStatistics":
        """These, and what has come between two states of another coach's."""
        none = HintTypeStatistics()
        types = {
            kind: self.types.get(kind, none).with_news(before.types.get(kind, none), new)
            for kind, new in after.types.items()
        }
        return HintStatistics({**self.types, **types})

    def to_dict(self) -> dict[str, Any]:
        return {
            kind: {**asdict(counts), "gap": counts.gap, "retired": counts.retired}
            for kind, counts in sorted(self.types.items())
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(TypeAdapter(dict[str, HintTypeStatistics]).validate_python(data))


@dataclass
class AuthorStatistics:
    """What became of the hints of one author."""

    written: int = 0
    refused: int = 0
    """Those with a part of the answer, without room, or of a retired type."""
    used: int = 0
    run: dict[str, int] = field(default_factory=dict)
    passed: dict[str, int] = field(default_factory=dict)

    def record(self, hint: Hint) -> None:
        self.written += 1
        self.refused += bool(hint.refused)
        self.used += hint.used
        _count_gates(hint.gates, self.run, self.passed)


def _count_gates(gates: HintGates, run: dict[str, int], passed: dict[str, int]) -> None:
    for name, gate in (("g0", gates.g0), ("g1", gates.g1), ("g2", gates.g2)):
        if gate is not None:
            run[name] = run.get(name, 0) + 1
            passed[name] = passed.get(name, 0) + gate.passed


def _with_news(known: dict[str, int], before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {**known, **{name: known.get(name, 0) + count - before.get(name, 0) for name, count in after.items()}}


def appended(before: Sequence[T], after: Sequence[T]) -> Sequence[T]:
    """What is new at the end of a list, of which the oldest entries may have gone."""
    for gone in range(len(before) + 1):
        kept = before[gone:]
        if list(after[: len(kept)]) == list(kept):
            return after[len(kept) :]
    return after
