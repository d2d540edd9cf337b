"""The seam to whatever watches how an agent behaves: it is shown every step, and may ask for a halt.

A rollout makes its own breaker, as it makes its own conversation. Continued, gone back in or forked, it makes another
and shows it the steps that count, so a breaker goes off at the same step whether the rollout was killed or not.
"""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from gametape.agent.limits import RolloutEnd
from gametape.core.step import Step

BreakerRung = Literal["nudge", "fresh_context", "pause", "stop"]


class RolloutTrip(Protocol):
    """A breaker that went off: what is to be done before the next question, and why."""

    @property
    def rung(self) -> BreakerRung: ...

    @property
    def reason(self) -> str: ...

    @property
    def nudge(self) -> str:
        """What is said to the agent."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """As an event of the kind `breaker`, with its evidence."""
        ...


class RolloutBreaker(Protocol):
    """Watches one rollout."""

    def __call__(self, step: Step, /) -> None:
        """See a step that was just recorded."""
        ...

    def replay(self, steps: Sequence[Step], /) -> None:
        """See the steps that were recorded before; what they say was done about them is not to be done again."""
        ...

    def take_trip(self) -> RolloutTrip | None:
        """What is to be done now; it is told once."""
        ...


class NullBreaker:
    """Nobody watches."""

    def __call__(self, _step: Step, /) -> None:
        return None

    def replay(self, _steps: Sequence[Step], /) -> None:
        return None

    def take_trip(self) -> RolloutTrip | None:
        return None


class BreakerTripped(RolloutEnd):
    """A breaker ended the rollout: a pause waits for a person, after whom it can be resumed."""

    def __init__(self, trip: RolloutTrip) -> None:
        super().__init__("limit", f"the watch asks for a {trip.rung}: {trip.reason}")
        self.rung = trip.rung
