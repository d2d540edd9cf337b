"""What is known of each type of hint: how often it was wanted, how it fared, and whether there is still a gap to close.

Plain data, so that a run can keep it beside its checkpoints and go on with it.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Self

from gametape.coach.posterior import Count
from gametape.coach.verified import Branches, Trial
from gametape.core.hint import Gates

_RECENT = 32
"""Measured gaps that are kept of a type: those of the latest policies."""
_ENOUGH = 16
CLOSED = 0.5
"""Log-odds: a type whose mean gap is below this has nothing left to teach."""


@dataclass
class TypeStatistics:
    located: int = 0
    used: int = 0
    run: dict[str, int] = field(default_factory=dict)
    """By gate: how often, and below how often it was passed."""
    passed: dict[str, int] = field(default_factory=dict)
    gaps: list[float] = field(default_factory=list)
    """Student's minus teacher's log-odds of what was done wrong, the latest last."""
    trial: Trial = field(default_factory=Trial)
    tried_by: int = 0
    """The weights that played the forks."""

    @property
    def gap(self) -> float | None:
        return sum(self.gaps) / len(self.gaps) if self.gaps else None

    @property
    def retired(self) -> bool:
        """The gap has closed, as far as the latest measurements say: should it open again, they will say so too."""
        return len(self.gaps) >= _ENOUGH and sum(self.gaps) / len(self.gaps) < CLOSED

    def measured(self, gap: float) -> None:
        self.gaps = [*self.gaps, gap][-_RECENT:]


@dataclass
class Statistics:
    """By type of hint."""

    types: dict[str, TypeStatistics] = field(default_factory=dict)

    def of(self, kind: str) -> TypeStatistics:
        return self.types.setdefault(kind, TypeStatistics())

    def note(self, kind: str, gates: Gates, used: bool) -> None:
        """One more target of this type, after its gates."""
        found = self.of(kind)
        found.located += 1
        found.used += used
        for name, gate in (("g0", gates.g0), ("g1", gates.g1), ("g2", gates.g2)):
            if gate is not None:
                found.run[name] = found.run.get(name, 0) + 1
                found.passed[name] = found.passed.get(name, 0) + gate.passed

    def plain(self) -> dict[str, Any]:
        return {
            kind: {**asdict(found), "gap": found.gap, "retired": found.retired}
            for kind, found in sorted(self.types.items())
        }

    @classmethod
    def from_plain(cls, told: dict[str, Any]) -> Self:
        return cls({kind: _read(one) for kind, one in told.items()})


def _read(told: dict[str, Any]) -> TypeStatistics:
    trial = told["trial"]
    return TypeStatistics(
        located=told["located"],
        used=told["used"],
        run=dict(told["run"]),
        passed=dict(told["passed"]),
        gaps=list(told["gaps"]),
        tried_by=told["tried_by"],
        trial=Trial(_branches(trial["plain"]), _branches(trial["hinted"]), trial["tokens"]),
    )


def _branches(told: dict[str, Any]) -> Branches:
    return Branches(Count(**told["check"]), Count(**told["success"]))
