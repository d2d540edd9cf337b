"""The seam between the watch and what it watches: the harness hands over each step, the trainer each trajectory."""

from collections.abc import Callable, Iterable

from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.watch.ladder import Ladder, Patience, Trip
from gametape.watch.seen import Seen, seen_of, steps_of
from gametape.watch.watching import Watch


class Breaker:
    """Watches steps and keeps the trip that is to be acted on until somebody takes it.

    It is a `Watcher` of the harness as it is: `Setting(watch=breaker)`, and before each question `breaker.take()`.
    `notify` is called at each trip of the rung `pause` and above, where a person should look.
    """

    def __init__(
        self,
        watch: Watch,
        patience: Patience | None = None,
        notify: Callable[[Trip], object] = lambda _trip: None,
        model: str | None = None,
    ) -> None:
        self._watch = watch
        self._patience = patience or Patience()
        self._notify = notify
        self._model = model
        self._ladder = Ladder()
        self._waiting: Trip | None = None

    def __call__(self, step: Step) -> None:
        """See a recorded step of the harness."""
        seen = seen_of(step, self._model)
        if seen is not None:
            self.look([seen])

    def look_over(self, trajectory: Trajectory) -> Trip | None:
        """See a finished trajectory of a policy in training, and take what came of it."""
        self.look(seen for _, seen in steps_of(trajectory))
        return self.take()

    def look(self, steps: Iterable[Seen]) -> None:
        for seen in steps:
            for alarm in self._watch.update(seen):
                self._ladder, trip = self._ladder.climb(alarm, self._patience)
                if trip is not None:
                    self._waiting = trip
                    if trip.rung in ("pause", "stop"):
                        self._notify(trip)

    def take(self) -> Trip | None:
        """What is to be done now; it is told once."""
        trip, self._waiting = self._waiting, None
        return trip
