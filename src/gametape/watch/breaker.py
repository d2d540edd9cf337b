"""The seam between the watch and what it watches: steps go in, and what is to be done about them comes out."""

from collections.abc import Callable, Iterable

from gametape.core.step import Step
from gametape.watch.ladder import KIND, Ladder, Patience, Trip
from gametape.watch.seen import Seen, seen_of
from gametape.watch.watching import Watch


class Breaker:
    """Watches steps and keeps the trip that is to be acted on until somebody takes it.

    It is a breaker of the harness as it is: `Setting(breaker=lambda: Breaker(Watch()))`. `notify` is called when a trip
    of the rung `pause` or above is taken, where a person should look.
    """

    def __init__(
        self,
        watch: Watch,
        patience: Patience | None = None,
        notify: Callable[[Trip], object] = lambda _trip: None,
    ) -> None:
        self._watch = watch
        self._patience = patience or Patience()
        self._notify = notify
        self._ladder = Ladder()
        self._waiting: Trip | None = None

    def __call__(self, step: Step) -> None:
        """See a recorded step of the harness."""
        seen = seen_of(step)
        if seen is not None:
            self.look([seen])

    def recall(self, line: Iterable[Step]) -> None:
        """See a rollout's earlier steps. Turns that a fork has from another are its own past too; a trip that is on
        record was taken."""
        for step in line:
            self(step.model_copy(update={"is_copied_context": None}))
            if any(event.get("kind") == KIND for event in step.ours.events or ()):
                self._waiting = None

    def look(self, steps: Iterable[Seen]) -> None:
        for seen in steps:
            for alarm in self._watch.update(seen):
                self._ladder, trip = self._ladder.climb(alarm, self._patience)
                if trip is not None:
                    self._waiting = trip

    def take(self) -> Trip | None:
        """What is to be done now; it is told once."""
        trip, self._waiting = self._waiting, None
        if trip is not None and trip.rung in ("pause", "stop"):
            self._notify(trip)
        return trip
