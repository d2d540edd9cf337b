"""Verification in warm processes of its own. A verdict takes Python time, which a process that samples or learns does
not have: its threads would wait for each other."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from gametape.core.errors import GametapeError
from gametape.core.verdict import Verdict
from gametape.record.loaded_task import LoadedTask
from gametape.sandbox.keeper_client import SandboxError
from gametape.verify.layers.profiles import Profile
from gametape.verify.reward import RewardKind
from gametape.verify.verifier_process import MAX_TASKS, Preparation, VerifyFailure, VerifyRequest

_T = TypeVar("_T")
_TRIES = 2
"""Processes that a verdict may lose before it counts as an infrastructure error."""
_SECONDS_TO_END = 5.0


class VerifierProcess:
    """One process. `known` are the latest tasks that it was given, which it need not be sent again."""

    def __init__(self, home: Path) -> None:
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-P", "-m", "gametape.verify.verifier_process", str(theirs.fileno()), str(home)]
        self.process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        self._connection = Connection(ours.detach())
        self.known: dict[str, None] = {}

    def verify(self, task: LoadedTask, workspace: Path, profile: Profile, kind: RewardKind) -> Verdict:
        """Raises `EOFError` or `OSError` where the process has died."""
        verdict = self._ask(task, workspace, profile, kind)
        assert isinstance(verdict, Verdict)
        return verdict

    def prepare(self, task: LoadedTask) -> Preparation:
        """Prepare a verifier for the task."""
        preparation = self._ask(task, None, "train", "layered")
        assert isinstance(preparation, Preparation)
        return preparation

    def _ask(
        self, task: LoadedTask, workspace: Path | None, profile: Profile, kind: RewardKind
    ) -> Verdict | Preparation:
        sent = None if task.digest in self.known else task
        self._connection.send(VerifyRequest(task.digest, sent, workspace, profile, kind))
        self.known.pop(task.digest, None)
        self.known[task.digest] = None
        for old in list(self.known)[:-MAX_TASKS]:
            del self.known[old]
        answer: Verdict | VerifyFailure | Preparation = self._connection.recv()
        if isinstance(answer, VerifyFailure):
            raise (SandboxError if answer.infrastructure else GametapeError)(answer.reason)
        return answer

    def close(self) -> None:
        """Any number of times."""
        with suppress(OSError):  # it may be closed, or the process gone
            self._connection.send(None)
        self._connection.close()
        try:
            self.process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class VerifierPool:
    """`size` processes, which start with the first verdict; further verdicts wait until one is free. An async
    context.

    A task is prepared once, by one process, before any verdict on it is asked for; the others read from disk what that
    one found. `preparing` is entered for as long as a task is being prepared."""

    def __init__(
        self,
        home: Path,
        size: int,
        preparing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._home, self._size, self._preparing = home, size, preparing
        self._slots = asyncio.Semaphore(size)
        self._room_ahead = asyncio.Semaphore(max(1, size // 2))
        """Of what is prepared ahead of its use, so that verdicts find a process too."""
        self._urgent: dict[str, asyncio.Event] = {}
        self.prepared: dict[str, bool] = {}
        """By digest of the tasks that are prepared: whether a process of this pool did it, or it lay on disk."""
        self._free: list[VerifierProcess] = []
        self._busy: list[VerifierProcess] = []
        self._prepared: dict[str, asyncio.Future[None]] = {}
        self._closed = False

    async def verify(self, task: LoadedTask, workspace: Path, profile: Profile, kind: RewardKind) -> Verdict:
        """The verdict on a workspace; by a process that has prepared the task already, if one is free. A caller that is
        cancelled does not take the process along."""
        self.prepare(task)
        await asyncio.wait([self._prepared[task.digest]])
        return await asyncio.shield(self._run(task, lambda process: process.verify(task, workspace, profile, kind)))

    def prepare(self, task: LoadedTask, ahead: bool = False) -> None:
        """Begin to prepare a task that will be verified, the first time that it is named here; one that is only named
        `ahead` waits while half of the processes are busy with such tasks. If that fails, the first verdict says
        why."""
        urgent = self._urgent.setdefault(task.digest, asyncio.Event())
        if not ahead:
            urgent.set()
        if task.digest not in self._prepared:
            preparing = asyncio.ensure_future(self._prepare(task, urgent))
            self._prepared[task.digest] = preparing
            preparing.add_done_callback(lambda done: None if done.cancelled() else done.exception())

    async def _prepare(self, task: LoadedTask, urgent: asyncio.Event) -> None:
        """At once where it is urgent, else as soon as there is room ahead or it has become so."""
        async with AsyncExitStack() as stack:
            if not urgent.is_set():
                room = asyncio.ensure_future(stack.enter_async_context(self._room_ahead))
                needed = asyncio.ensure_future(urgent.wait())
                try:
                    await asyncio.wait((room, needed), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    needed.cancel()
                    room.cancel()
                    await asyncio.wait((room, needed))
            preparation = await self._run(task, lambda process: self._prepare_in(process, task))
            self.prepared[task.digest] = preparation.made

    def _prepare_in(self, process: VerifierProcess, task: LoadedTask) -> Preparation:
        with self._preparing():
            return process.prepare(task)

    async def _run(self, task: LoadedTask, work: Callable[[VerifierProcess], _T]) -> _T:
        async with self._slots:
            for _ in range(_TRIES):
                process = self._take(task)
                try:
                    return await asyncio.to_thread(work, process)
                except (EOFError, OSError):
                    await asyncio.to_thread(process.close)
                finally:
                    self._give_back(process)
        raise SandboxError(f"{task.task.name}: the process that verified it ended {_TRIES} times")

    def _take(self, task: LoadedTask) -> VerifierProcess:
        if self._closed:
            raise SandboxError("the verifier pool is closed")
        missing = self._size - len(self._free) - len(self._busy)
        self._free = [*map(self._living, self._free), *(VerifierProcess(self._home) for _ in range(missing))]
        known = [process for process in self._free if task.digest in process.known]
        process = known[0] if known else min(self._free, key=lambda process: len(process.known))
        self._free.remove(process)
        self._busy.append(process)
        return process

    def _give_back(self, process: VerifierProcess) -> None:
        self._busy.remove(process)
        if not self._closed:
            self._free.append(self._living(process))

    def _living(self, process: VerifierProcess) -> VerifierProcess:
        """The same, or another in its place if it has died."""
        if process.process.poll() is None:
            return process
        process.close()
        return VerifierProcess(self._home)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        for preparing in self._prepared.values():
            preparing.cancel()
        for process in self._busy:
            process.process.kill()
        await asyncio.gather(*(asyncio.to_thread(process.close) for process in self._free))
