"""The processes of a learner, seen from the one that started them: calls that all of them obey, and what is done when
one dies, fails or hangs."""

import multiprocessing
import pickle
import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from gametape.core.errors import GametapeError
from gametape.train.rank_messages import Answer, Failed, Message, RankCall, Saved, receive, send
from gametape.train.rank_process import RankStart, rank_main

_SECONDS_TO_START = 600.0
_SECONDS_TO_BLAME = 1.0
"""When one has failed the others soon fail at meeting it: who was first is known a moment later."""
_SECONDS_TO_END = 5.0


class RankEnded(GametapeError):
    """A process of the learner is gone, and with it the others. What is on disk is whole."""

    exit_code = 3


class RankGroup:
    """Ends all processes as soon as one of them cannot go on: none can learn without the others."""

    def __init__(self, starts: Sequence[RankStart], patience: float = 60.0) -> None:
        """One that shows no sign of life for `patience` seconds hangs."""
        self.world, self._starts, self._patience = len(starts), starts, patience
        self.ended: Future[None] = Future()
        self._lock = threading.Lock()
        self._answers: queue.Queue[tuple[int, Answer] | RankEnded] = queue.Queue()
        self._saving: Future[None] = Future()
        self._unsaved = 0
        self._failed: dict[int, Failed] = {}
        self._silence = [-_SECONDS_TO_START] * self.world
        self._closing = False
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        context = multiprocessing.get_context("spawn")
        try:
            for rank, start in enumerate(starts):
                ours, theirs = context.Pipe()
                process = context.Process(target=rank_main, args=(theirs, start), daemon=True, name=f"rank {rank}")
                self._pipes.append(ours)
                process.start()
                self._processes.append(process)
                theirs.close()
        except BaseException:
            self._kill()
            raise
        self._listener = threading.Thread(target=self._listen, daemon=True, name="ranks")
        self._listener.start()

    def call(self, method: str, *arguments: Any) -> Any:
        """What the first rank answers when all have done it."""
        message = pickle.dumps(RankCall(method, arguments))
        with self._lock:
            for pipe in self._pipes:
                with suppress(OSError):  # the listener knows why
                    pipe.send_bytes(message)
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
        for pipe in self._pipes:
            with suppress(OSError):
                send(pipe, None)
        until = time.monotonic() + _SECONDS_TO_END
        for process in self._processes:
            process.join(max(0.0, until - time.monotonic()))
        self._kill()
        self._listener.join()
        self._tell(RankEnded("the learner was closed"))
        for log in (Path(start.log) for start in self._starts):
            if log.exists() and not log.stat().st_size:
                log.unlink()

    def _collect(self) -> Any:
        answers: dict[int, Answer] = {}
        error: GametapeError | None = None
        while len(answers) < self.world:
            try:
                answer = self._answers.get(timeout=self._patience if error else None)
            except queue.Empty:  # one could not do it, and the others wait for it
                self._kill()
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
        pipes = {pipe: rank for rank, pipe in enumerate(self._pipes) if not pipe.closed}
        living = [process.sentinel for process in self._processes if process.exitcode is None]
        began = time.monotonic()
        ready = wait([*pipes, *living], timeout=seconds)
        waited = min(time.monotonic() - began, 2 * seconds)
        self._silence = [silence + waited for silence in self._silence]
        for pipe, rank in pipes.items():
            if pipe in ready:
                try:
                    self._take(rank, receive(pipe))
                except (EOFError, OSError):
                    pipe.close()

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
        gone = any(process.exitcode is not None for process in self._processes)
        return gone or bool(self._failed) or max(self._silence) > self._patience

    def _end(self) -> None:
        """Tell everybody who waits which rank it was."""
        until = time.monotonic() + _SECONDS_TO_BLAME
        while time.monotonic() < until and any(process.exitcode is None for process in self._processes):
            self._receive(0.1)
        rank, why = self._blamed()
        self._kill()
        log = Path(self._starts[rank].log)
        where = f" (its output is in {log})" if log.exists() and log.stat().st_size else ""
        error = RankEnded(
            f"rank {rank} of {self.world} of the learner {why}{where}; --resume goes on after the last checkpoint"
        )
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
        for rank, process in enumerate(self._processes):
            code = process.exitcode
            if code is not None and rank not in self._failed:
                return rank, f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if self._failed:
            rank = min(self._failed, key=lambda one: self._failed[one].time)
            return rank, f"failed: {self._failed[rank].reason}"
        rank = max(range(self.world), key=lambda one: self._silence[one])
        return rank, f"has shown no sign of life for {self._patience:.0f} seconds"

    def _kill(self) -> None:
        """Stopped processes too."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
