"""The ranks of a learner as processes of this machine, each at the end of a pipe."""

import multiprocessing
import pickle
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from gametape.train.rank_messages import Message, RankCall, receive
from gametape.train.rank_process import RankStart, rank_main


class PipedRanks:
    """A `RankTransport`."""

    def __init__(self, starts: Sequence[RankStart]) -> None:
        self._logs = [Path(start.log) for start in starts]
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
            self.kill()
            raise

    @property
    def world(self) -> int:
        return len(self._logs)

    def send(self, call: RankCall | None) -> None:
        message = pickle.dumps(call)
        for pipe in self._pipes:
            with suppress(OSError):  # who listens knows why
                pipe.send_bytes(message)

    def receive(self, seconds: float) -> list[tuple[int, Message]]:
        pipes = {pipe: rank for rank, pipe in enumerate(self._pipes) if not pipe.closed}
        living = [process.sentinel for process in self._processes if process.exitcode is None]
        ready = wait([*pipes, *living], timeout=seconds)
        messages = []
        for pipe, rank in pipes.items():
            if pipe in ready:
                try:
                    messages.append((rank, receive(pipe)))
                except (EOFError, OSError):
                    pipe.close()
        return messages

    def ended(self, rank: int) -> str | None:
        code = self._processes[rank].exitcode
        if code is None:
            return None
        return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"

    def output_of(self, rank: int) -> str:
        log = self._logs[rank]
        return f" (its output is in {log})" if log.exists() and log.stat().st_size else ""

    def join(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        for process in self._processes:
            process.join(max(0.0, until - time.monotonic()))

    def kill(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()

    def close(self) -> None:
        for log in self._logs:
            if log.exists() and not log.stat().st_size:
                log.unlink()
