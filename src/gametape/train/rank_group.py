"""The ranks of a learner, seen from the process that started them: calls that all of them obey, and what is done when
one dies, fails or hangs."""

import queue
import threading
import time
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Protocol

from gametape.core.errors import GametapeError
from gametape.train.rank_messages import Answer, Failed, Message, RankCall, Saved

_SECONDS_TO_START = 600.0
_SECONDS_TO_BLAME = 1.0
"""When one has failed the others soon fail at meeting it: who was first is known a moment later."""
_SECONDS_TO_END = 5.0


class RankEnded(GametapeError):
    """A rank of the learner is gone, and with it the others. What is on disk is whole."""

    exit_code = 3

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; --resume goes on after the last checkpoint")
        self.reason = reason


class RankTransport(Protocol):
    """What runs the ranks and carries messages to and from them: processes of this machine, or actors of a cluster."""

    @property
    def world(self) -> int:
        """How many ranks there are."""
        ...

    def send(self, call: RankCall | None) -> None:
        """To every rank, as far as it is there; None ends it."""
        ...

    def receive(self, seconds: float) -> list[tuple[int, Message]]:
        """What comes within some seconds, with the rank that sent it; also returns when a rank ends."""
        ...

    def ended(self, rank: int) -> str | None:
        """How it ended; None while it runs."""
        ...

    def output_of(self, rank: int) -> str:
        """Where to read what it printed, to follow a sentence about it."""
        ...

    def join(self, seconds: float) -> None:
        """Wait for all of them to end, up to some seconds."""
        ...

    def kill(self) -> None:
        """End all of them, stopped ones too."""
        ...

    def close(self) -> None:
        """All have ended, and nobody will ask again."""
        ...


class RankGroup:
    """Ends all ranks as soon as one of them cannot go on: none can learn without the others."""

    def __init__(self, ranks: RankTransport, patience: float = 60.0) -> None:
        """One that shows no sign of life for `patience` seconds hangs."""
        self.world, self._ranks, self._patience = ranks.world, ranks, patience
        self.ended: Future[None] = Future()
        self._lock = threading.Lock()
        self._answers: queue.Queue[tuple[int, Answer] | RankEnded] = queue.Queue()
        self._saving: Future[None] = Future()
        self._unsaved = 0
        self._failed: dict[int, Failed] = {}
        self._silence = [-_SECONDS_TO_START] * self.world
        self._closing = False
        self._listener = threading.Thread(target=self._listen, daemon=True, name="ranks")
        self._listener.start()

    def call(self, method: str, *arguments: Any) -> Any:
        """What the first rank answers when all have done it."""
        with self._lock:
            self._ranks.send(RankCall(method, arguments))
            return self._collect()

    def opened(self) -> Any:
        """What the first rank says when all are ready."""
        with self._lock:
            return self._collect()

    def save(self, *arguments: Any) -> "Future[None]":
        """A call whose work goes on after it: the result is there when all ranks have written what is theirs."""
        self._saving, self._unsaved = Future(), self.world
        saving = self._saving
        self.call("save", *arguments)
        return saving

    def close(self) -> None:
        """No process is left afterwards."""
        self._closing = True
        self._ranks.send(None)
        self._ranks.join(_SECONDS_TO_END)
        self._ranks.kill()
        self._listener.join()
        self._tell(RankEnded("the learner was closed"))
        self._ranks.close()

    def _collect(self) -> Any:
        answers: dict[int, Answer] = {}
        error: GametapeError | None = None
        while len(answers) < self.world:
            try:
                answer = self._answers.get(timeout=self._patience if error else None)
            except queue.Empty:  # one could not do it, and the others wait for it
                self._ranks.kill()
                assert error
                raise error from None
            if isinstance(answer, RankEnded):
                self._answers.put(answer)
                raise answer
            answers[answer[0]] = answer[1]
            error = error or answer[1].error
        first = min((rank for rank, answer in answers.items() if answer.error), default=None)
        if first is not None and (raised := answers[first].error):
            raise raised
        return answers[0].value

    def _listen(self) -> None:
        """Until the group is closed, or one of it cannot go on."""
        while not self._closing:
            self._receive(1.0)
            if not self._closing and self._is_in_trouble():
                self._end()
                return

    def _receive(self, seconds: float) -> None:
        """What comes within some seconds, or the end of a process. Silence is counted here and not by the clock, which
        also goes on while this very process is stopped."""
        began = time.monotonic()
        messages = self._ranks.receive(seconds)
        waited = min(time.monotonic() - began, 2 * seconds)
        self._silence = [silence + waited for silence in self._silence]
        for rank, message in messages:
            self._take(rank, message)

    def _take(self, rank: int, message: Message) -> None:
        self._silence[rank] = 0.0
        if isinstance(message, Answer):
            self._answers.put((rank, message))
        elif isinstance(message, Failed):
            self._failed[rank] = message
        elif isinstance(message, Saved):
            self._unsaved -= 1
            if message.error and not self._saving.done():
                self._saving.set_exception(message.error)
            elif not self._unsaved and not self._saving.done():
                self._saving.set_result(None)

    def _is_in_trouble(self) -> bool:
        gone = any(self._ranks.ended(rank) for rank in range(self.world))
        return gone or bool(self._failed) or max(self._silence) > self._patience

    def _end(self) -> None:
        """Tell everybody who waits which rank it was."""
        until = time.monotonic() + _SECONDS_TO_BLAME
        while time.monotonic() < until and any(self._ranks.ended(rank) is None for rank in range(self.world)):
            self._receive(0.1)
        rank, why = self._blamed()
        self._ranks.kill()
        where = self._ranks.output_of(rank)
        error = RankEnded(f"rank {rank} of {self.world} of the learner {why}{where}")
        self._tell(error)
        with suppress(InvalidStateError):
            self.ended.set_exception(error)

    def _tell(self, error: RankEnded) -> None:
        """Whoever waits for an answer, or for a checkpoint."""
        self._answers.put(error)
        with suppress(InvalidStateError):
            self._saving.set_exception(error)

    def _blamed(self) -> tuple[int, str]:
        """One that ended without a word was ended by somebody; the others fail because they miss it."""
        for rank in range(self.world):
            how = self._ranks.ended(rank)
            if how is not None and rank not in self._failed:
                return rank, how
        if self._failed:
            rank = min(self._failed, key=lambda one: self._failed[one].time)
            return rank, f"failed: {self._failed[rank].reason}"
        rank = max(range(self.world), key=lambda one: self._silence[one])
        return rank, f"has shown no sign of life for {self._patience:.0f} seconds"
