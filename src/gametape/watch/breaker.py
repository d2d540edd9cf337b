"""The breaker: decides what to do about an alarm, one rung higher each time the rung before did not help.

It is a pure state machine; its caller acts.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from gametape.core.step import Step
from gametape.watch.monitor_set import BehaviourAlarm, MonitorSet
from gametape.watch.observed_step import ObservedStep, observed_step
from gametape.watch.repeated_calls import REPEATED, TIMES, RepeatedCalls
from gametape.watch.text_features import printable

BREAKER_EVENT = "breaker"
"""The kind of the events on a record that are trips."""
Rung = Literal["nudge", "fresh_context", "pause", "stop"]
RUNGS: tuple[Rung, ...] = ("nudge", "fresh_context", "pause", "stop")
"""Tell the agent; start a fresh context from the frontier; notify a person and wait; end the rollout."""


@dataclass(frozen=True)
class EscalationPatience:
    """In steps: how long a rung is given to help, and after how many quiet steps the ladder starts again."""

    grace: int = 30
    forget: int = 500


@dataclass(frozen=True)
class BreakerTrip:
    """The rung to take, and the alarm that is the reason for it."""

    rung: Rung
    step: int
    alarm: BehaviourAlarm

    @property
    def reason(self) -> str:
        """The alarm and its evidence as text, for an event or for the agent."""
        parts = [f"{key}: {_short(value)}" for key, value in self.alarm.evidence.items() if key != "examples" and value]
        return f"{self.alarm.monitor} ({'; '.join(parts)})" if parts else self.alarm.monitor

    @property
    def nudge(self) -> str:
        if self.alarm.monitor == REPEATED:
            times, call = self.alarm.evidence["times"], _short(self.alarm.evidence["call"])
            return (
                f"You have made the same call {times} times, with the same result each time: {call}. "
                "It will not change by itself: do something else, or finish."
            )
        return (
            f"Your last turns have become repetitive: {self.reason}. "
            "Step back: say what is done and what is left, and go on in another way, or finish."
        )

    def to_dict(self) -> dict[str, Any]:
        """The trip as an event for a record."""
        evidence = self.alarm.evidence
        return {"kind": BREAKER_EVENT, "detail": f"{self.rung}: {self.reason}", "rung": self.rung, "evidence": evidence}


@dataclass(frozen=True)
class EscalationLadder:
    """The state for one agent: how many rungs were taken, and when the last alarm was."""

    taken: int = 0
    tripped: int = 0
    alarmed: int = 0

    def escalate(
        self, alarm: BehaviourAlarm, patience: EscalationPatience
    ) -> "tuple[EscalationLadder, BreakerTrip | None]":
        """The next rung, unless the one before has not had its time yet. The last rung is repeated."""
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
    """Observes steps and holds the trip to act on until `take_trip`.

    The agent loop uses it as its breaker: `breaker=lambda: BehaviourBreaker(MonitorSet())`. `notify` is called when a
    trip of the rung `pause` or above is taken, because a person should look.
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
        self._repeated = RepeatedCalls()
        self._waiting: BreakerTrip | None = None

    def __call__(self, step: Step) -> None:
        """Observe a recorded step. What the monitors ask for comes before the nudge about a repeated call."""
        observed = observed_step(step)
        if observed is None:
            return
        if repeated := self._repeated.update(step):
            alarm = BehaviourAlarm(REPEATED, self._watch.steps + 1, float(repeated["times"]), float(TIMES), repeated)
            self._waiting = BreakerTrip("nudge", alarm.step, alarm)
        self.observe([observed])

    def replay(self, steps: Iterable[Step]) -> None:
        """Observe a rollout's earlier steps. Turns that a fork copied count as its own; a recorded trip was taken."""
        for step in steps:
            self(step.model_copy(update={"is_copied_context": None}))
            if any(event.get("kind") == BREAKER_EVENT for event in step.gametape_extra.events or ()):
                self._waiting = None

    def observe(self, steps: Iterable[ObservedStep]) -> None:
        for observed in steps:
            for alarm in self._watch.update(observed):
                self._ladder, trip = self._ladder.escalate(alarm, self._patience)
                if trip is not None:
                    self._waiting = trip

    def take_trip(self) -> BreakerTrip | None:
        """The trip to act on now; each is returned once."""
        trip, self._waiting = self._waiting, None
        if trip is not None and trip.rung in ("pause", "stop"):
            self._notify(trip)
        return trip
