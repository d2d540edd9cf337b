"""The breaker ladder: what to do about an alarm, a rung higher each time the one before it did not help.

A pure state machine: it decides, and something else does.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from gametape.core.step import Step
from gametape.watch.monitor_set import BehaviourAlarm, MonitorSet
from gametape.watch.observed_step import ObservedStep, observed_step
from gametape.watch.text_features import printable

BREAKER_EVENT = "breaker"
"""Of the events on a record that are trips."""
Rung = Literal["nudge", "fresh_context", "pause", "stop"]
RUNGS: tuple[Rung, ...] = ("nudge", "fresh_context", "pause", "stop")
"""Say so; begin afresh from the frontier; wait for a person, who is told; end it."""


@dataclass(frozen=True)
class EscalationPatience:
    """In steps: how long a rung is given to help, and how long it must be quiet until all is forgotten."""

    grace: int = 30
    forget: int = 500


@dataclass(frozen=True)
class BreakerTrip:
    """A breaker that went off: the rung to take, and the alarm that is the reason for it."""

    rung: Rung
    step: int
    alarm: BehaviourAlarm

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

    def to_dict(self) -> dict[str, Any]:
        """As an event on a record."""
        evidence = self.alarm.evidence
        return {"kind": BREAKER_EVENT, "detail": f"{self.rung}: {self.reason}", "rung": self.rung, "evidence": evidence}


@dataclass(frozen=True)
class EscalationLadder:
    """Where one agent stands: how many rungs were taken, and when there last was a reason to."""

    taken: int = 0
    tripped: int = 0
    alarmed: int = 0

    def escalate(
        self, alarm: BehaviourAlarm, patience: EscalationPatience
    ) -> "tuple[EscalationLadder, BreakerTrip | None]":
        """The next rung, unless the last one has not had its time yet. The last rung is taken again and again."""
        step = alarm.step
        if self.taken and step - self.tripped <= patience.grace:
            return EscalationLadder(self.taken, self.tripped, step), None
        fresh = step - self.alarmed > patience.forget
        taken = 1 if fresh else min(self.taken + 1, len(RUNGS))
        return EscalationLadder(taken, step, step), BreakerTrip(RUNGS[taken - 1], step, alarm)


def _short(value: Any, most: int = 120) -> str:
    text = printable(", ".join(map(str, value)) if isinstance(value, list) else str(value))
    return text if len(text) <= most else text[: most - 3] + "..."


class BehaviourBreaker:
    """Watches steps and keeps the trip that is to be acted on until somebody takes it.

    It is a breaker of the harness as it is: `Setting(breaker=lambda: Breaker(Watch()))`. `notify` is called when a trip
    of the rung `pause` or above is taken, where a person should look.
    """

    def __init__(
        self,
        watch: MonitorSet,
        patience: EscalationPatience | None = None,
        notify: Callable[[BreakerTrip], object] = lambda _trip: None,
    ) -> None:
        self._watch = watch
        self._patience = patience or EscalationPatience()
        self._notify = notify
        self._ladder = EscalationLadder()
        self._waiting: BreakerTrip | None = None

    def __call__(self, step: Step) -> None:
        """See a recorded step of the harness."""
        seen = observed_step(step)
        if seen is not None:
            self.observe([seen])

    def replay(self, steps: Iterable[Step]) -> None:
        """See a rollout's earlier steps. Turns that a fork has from another are its own past too; a trip that is on
        record was taken."""
        for step in steps:
            self(step.model_copy(update={"is_copied_context": None}))
            if any(event.get("kind") == BREAKER_EVENT for event in step.gametape_extra.events or ()):
                self._waiting = None

    def observe(self, steps: Iterable[ObservedStep]) -> None:
        for seen in steps:
            for alarm in self._watch.update(seen):
                self._ladder, trip = self._ladder.escalate(alarm, self._patience)
                if trip is not None:
                    self._waiting = trip

    def take_trip(self) -> BreakerTrip | None:
        """What is to be done now; it is told once."""
        trip, self._waiting = self._waiting, None
        if trip is not None and trip.rung in ("pause", "stop"):
            self._notify(trip)
        return trip
