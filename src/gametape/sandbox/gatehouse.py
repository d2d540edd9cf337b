"""The walls of one live sandbox: each shell brings a filter of its own, all write into one record."""

import os
import select
from collections.abc import Callable

from gametape.sandbox.events import Wall
from gametape.sandbox.launcher import SandboxError
from gametape.sandbox.policy import Policy
from gametape.sandbox.reactor import Reactor
from gametape.sandbox.result import KilledBy, Violation


class Gatehouse:
    """Answers every listener of a session. Jobs outlive their shell, so a listener goes with the last of them."""

    def __init__(
        self,
        policy: Policy,
        shown: tuple[str, ...],
        reactor: Reactor,
        may_fork: Callable[[], bool],
        stop: Callable[[KilledBy], None],
    ) -> None:
        self._policy = policy
        self._shown = shown
        self._reactor = reactor
        self._may_fork = may_fork
        self._stop = stop
        self._walls: dict[int, Wall] = {}  # by listener
        self.record: list[Violation] = []

    def listen(self, listener: int | None, on_start: Callable[[int], None]) -> None:
        """Take over a listener; `on_start` is told the number of the first process that executes something."""
        if listener is None:
            raise SandboxError("a session needs the call filter")
        wall = Wall(self._policy, self._shown, on_start, self._may_fork, command_is_first=True)
        wall.violations = self.record
        self._walls[listener] = wall

        def answer(event: int) -> None:
            if not event & select.POLLIN:
                self._leave(listener)  # the last process under this filter is gone
            elif reason := wall.answer(listener):
                self._stop(reason)

        self._reactor.on(listener, answer)

    def begin(self) -> None:
        """A new command, a new record."""
        self.record.clear()
        for wall in self._walls.values():
            wall.dropped = 0

    def close(self) -> None:
        for listener in list(self._walls):
            self._leave(listener)

    def _leave(self, listener: int) -> None:
        self._reactor.off(listener)
        if self._walls.pop(listener, None):
            os.close(listener)
