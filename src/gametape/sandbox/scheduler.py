"""Live sandboxes for asyncio: hundreds may be open, a few run a command, the rest wait.

`SandboxScheduler` opens them and bounds how many commands and starts run at the same time.
"""

import asyncio
import os
import shlex
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from gametape.core.errors import BadInput
from gametape.core.messages import CommandResult
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.result import SessionResult
from gametape.sandbox.rewindable_session import RewindableSession
from gametape.sandbox.session import ShellSession, open_session
from gametape.sandbox.snapshots.store import SnapshotStore

_T = TypeVar("_T")
_E = TypeVar("_E", bound="LiveWorkspace")


class SandboxScheduler:
    """Opens workspaces and lets at most `max_concurrent` of them run at a time; by default two for each core.

    Unless `durably`, snapshots outlive this process but perhaps not a crash of the machine.
    """

    def __init__(
        self,
        backend: str = "bubblewrap",
        max_concurrent: int | None = None,
        store: SnapshotStore | None = None,
        durably: bool = True,
    ) -> None:
        self._backend = backend
        self._store = store
        self.durably = durably
        self._slots = asyncio.Semaphore(max_concurrent or 2 * (os.cpu_count() or 1))
        self._open: set[LiveWorkspace] = set()

    async def open(self, spec: SandboxSpec) -> "LiveWorkspace":
        """A live sandbox without snapshots."""
        return self.track(LiveWorkspace(self, await self.run_in_slot(lambda: open_session(spec, self._backend))))

    async def open_snapshot(self, snapshot: str, spec: SandboxSpec) -> "RewindableWorkspace":
        """A live sandbox on the tree of a snapshot, which can be saved and restored."""
        store = self._store
        if store is None:
            raise BadInput("this scheduler has no snapshot store; give it one")
        session = await self.run_in_slot(lambda: RewindableSession(store, snapshot, spec, self._backend))
        return self.track(RewindableWorkspace(self, session))

    def track(self, environment: _E) -> _E:
        self._open.add(environment)
        return environment

    async def run_in_slot(self, work: Callable[[], _T]) -> _T:
        """Run a function that takes a core, in a thread, when a slot is free."""
        async with self._slots:
            return await asyncio.to_thread(work)

    async def run(self, session: ShellSession, command: str, wall_seconds: float | None) -> SessionResult:
        async with self._slots:
            try:
                return await asyncio.wrap_future(session.submit(command, wall_seconds))
            except asyncio.CancelledError:
                session.interrupt()
                raise

    def untrack(self, workspace: "LiveWorkspace") -> None:
        self._open.discard(workspace)

    async def close(self) -> None:
        """Close every sandbox that is still open."""
        await asyncio.gather(*(environment.close() for environment in list(self._open)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class LiveWorkspace:
    """A workspace in which hostile code runs, command after command."""

    def __init__(self, scheduler: SandboxScheduler, session: ShellSession | RewindableSession) -> None:
        self._scheduler = scheduler
        self._source = session

    @property
    def _session(self) -> ShellSession:
        return self._source if isinstance(self._source, ShellSession) else self._source.session

    async def shell(self, command: str, wall_seconds: float | None = None) -> SessionResult:
        """Run a command in the workspace's shell and return everything that is known about it."""
        return await self._scheduler.run(self._session, command, wall_seconds)

    async def run(self, argv: Sequence[str], *, timeout: float) -> CommandResult:
        """Run a program, in the shell's directory and with its variables."""
        result = await self.shell(shlex.join(argv), timeout)
        return CommandResult(
            exit_code=result.exit_code, stdout=result.stdout, stderr=result.stderr, killed_by=result.killed_by
        )

    async def put(self, path: str, content: bytes) -> None:
        await asyncio.to_thread(self._session.put, path, content)

    async def get(self, path: str) -> bytes:
        return await asyncio.to_thread(self._session.get, path)

    async def close(self) -> None:
        self._scheduler.untrack(self)
        await asyncio.to_thread(self._source.close)


class RewindableWorkspace(LiveWorkspace):
    """A live workspace with snapshots: the `Workspace` of `core.protocols`."""

    def __init__(self, scheduler: SandboxScheduler, session: RewindableSession) -> None:
        super().__init__(scheduler, session)
        self._rewindable = session

    async def snapshot(self) -> str:
        """Save the file tree and return the snapshot's name."""
        return await self._scheduler.run_in_slot(lambda: self._rewindable.snapshot(self._scheduler.durably))

    async def restore(self, snapshot: str) -> None:
        await self._scheduler.run_in_slot(lambda: self._rewindable.restore(snapshot))

    async def fork(self, snapshot: str) -> Self:
        """A new workspace that starts from a snapshot; this one is not changed."""
        session = await self._scheduler.run_in_slot(lambda: self._rewindable.fork(snapshot))
        return self._scheduler.track(type(self)(self._scheduler, session))
