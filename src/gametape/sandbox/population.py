"""Who is inside a live sandbox: everybody, those who hold it up, and the means to stop or end the others."""

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator

from gametape.sandbox.watching import children, descendants


class Population:
    """The processes of one session, by their numbers outside."""

    def __init__(self, outer: int) -> None:
        self._outer = outer
        self.anchor: int | None = None
        """The process that holds the sandbox open from inside."""
        self.shell: int | None = None

    def __iter__(self) -> Iterator[int]:
        """The processes below which everybody is found, as of now."""
        return iter([self._outer, *([self.shell] if self.shell else [])])

    def all(self) -> frozenset[int]:
        return frozenset(pid for root in self for pid in descendants(root))

    def others(self) -> frozenset[int]:
        """All but those without whom there is no session."""
        pillars = {self._outer, *children(self._outer), self.anchor, self.shell}
        return self.all() - pillars

    def halt(self, rounds: int = 100) -> set[int]:
        """Stop the shell and the others, again while new ones appear; says whom."""
        stopped = {self.shell} if self.shell else set()
        send(signal.SIGSTOP, stopped)
        for _ in range(rounds):
            fresh = self.others() - stopped
            if not fresh:
                break
            send(signal.SIGSTOP, fresh)
            stopped |= fresh
        return stopped


def send(number: int, pids: Iterable[int]) -> None:
    """A signal to each that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
