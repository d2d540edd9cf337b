"""The protocol of a breaker: it sees every recorded step and may ask for a nudge, a fresh context, a pause or a stop.

A rollout makes its own breaker. When it is resumed, rewound or forked it makes a new one and replays the active steps,
so a breaker trips at the same step whether the rollout was killed or not. Of a record that is too long for that, the
resumed breaker is shown the first turns and the latest steps (`observed_steps_of`).
"""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from gametape.agent.limits import RolloutEnd
from gametape.core.step import Step

BreakerRung = Literal["nudge", "fresh_context", "pause", "stop"]


class RolloutTrip(Protocol):
    """A breaker's request: what to do before the next query, and why."""

    @property
    def rung(self) -> BreakerRung: ...

    @property
    def reason(self) -> str: ...

    @property
    def nudge(self) -> str:
        """The message to the agent."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The trip as an event of the kind `breaker`, with its evidence."""
        ...


class RolloutBreaker(Protocol):
    """Watches one rollout."""

    def __call__(self, step: Step, /) -> None:
        """Take in a step that was just recorded."""
        ...

    def replay(self, steps: Sequence[Step], /) -> None:
        """Take in the steps that were recorded before. Trips that they record are not raised again."""
        ...

    def take_trip(self) -> RolloutTrip | None:
        """The pending trip, once; None if there is none."""
        ...


class NullBreaker:
    """Never trips."""

    def __call__(self, _step: Step, /) -> None:
        return None

    def replay(self, _steps: Sequence[Step], /) -> None:
        return None

    def take_trip(self) -> RolloutTrip | None:
        return None


class BreakerTripped(RolloutEnd):
    """A breaker ended the rollout. After a pause a person can resume it."""

    def __init__(self, trip: RolloutTrip) -> None:
        super().__init__("limit", f"the watch asks for a {trip.rung}: {trip.reason}")
        self.rung = trip.rung
