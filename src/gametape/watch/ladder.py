"""The breaker ladder: what to do about an alarm, a rung higher each time the one before it did not help.

A pure state machine: it decides, and something else does.
"""

from dataclasses import dataclass
from typing import Any, Literal

from gametape.watch.watching import Alarm
from gametape.watch.words import printable

KIND = "breaker"
"""Of the events on a record that are trips."""
Rung = Literal["nudge", "fresh_context", "pause", "stop"]
RUNGS: tuple[Rung, ...] = ("nudge", "fresh_context", "pause", "stop")
"""Say so; begin afresh from the frontier; wait for a person, who is told; end it."""


@dataclass(frozen=True)
class Patience:
    """In steps: how long a rung is given to help, and how long it must be quiet until all is forgotten."""

    grace: int = 30
    forget: int = 500


@dataclass(frozen=True)
class Trip:
    """A breaker that went off: the rung to take, and the alarm that is the reason for it."""

    rung: Rung
    step: int
    alarm: Alarm

    @property
    def reason(self) -> str:
        """In words, as they can stand in an event or be said to the agent."""
        shown = [f"{key}: {_short(value)}" for key, value in self.alarm.evidence.items() if key != "examples" and value]
        return f"{self.alarm.monitor} ({'; '.join(shown)})" if shown else self.alarm.monitor

    @property
    def nudge(self) -> str:
        return (
            f"Your last turns have become repetitive: {self.reason}. "
            "Step back: say what is done and what is left, and go on in another way, or finish."
        )

    def plain(self) -> dict[str, Any]:
        """As an event on a record."""
        evidence = self.alarm.evidence
        return {"kind": KIND, "detail": f"{self.rung}: {self.reason}", "rung": self.rung, "evidence": evidence}


@dataclass(frozen=True)
class Ladder:
    """Where one agent stands: how many rungs were taken, and when there last was a reason to."""

    taken: int = 0
    tripped: int = 0
    alarmed: int = 0

    def climb(self, alarm: Alarm, patience: Patience) -> "tuple[Ladder, Trip | None]":
        """The next rung, unless the last one has not had its time yet. The last rung is taken again and again."""
        step = alarm.step
        if self.taken and step - self.tripped <= patience.grace:
            return Ladder(self.taken, self.tripped, step), None
        fresh = step - self.alarmed > patience.forget
        taken = 1 if fresh else min(self.taken + 1, len(RUNGS))
        return Ladder(taken, step, step), Trip(RUNGS[taken - 1], step, alarm)


def _short(value: Any, most: int = 120) -> str:
    text = printable(", ".join(map(str, value)) if isinstance(value, list) else str(value))
    return text if len(text) <= most else text[: most - 3] + "..."
