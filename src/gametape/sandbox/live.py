"""Live sandboxes for asyncio: hundreds may be up, a few are busy, the rest wait their turn.

`Floor` is where they are opened. It holds the one number that keeps a small machine alive: how many commands (and
starts) run at the same time.
"""

import asyncio
import os
import shlex
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from gametape.core.errors import BadInput
from gametape.core.messages import CommandResult
from gametape.sandbox.backend import Spec
from gametape.sandbox.result import SessionResult
from gametape.sandbox.rewind import Rewindable
from gametape.sandbox.session import Session, open_session
from gametape.sandbox.snapshots.store import SnapshotStore

_T = TypeVar("_T")
_E = TypeVar("_E", bound="LiveEnvironment")


class Floor:
    """Opens environments and lets at most `at_once` of them work at a time; by default two for each core.

    Unless `durably`, snapshots outlive this process but perhaps not a crash of the machine.
    """

    def __init__(
        self,
        backend: str = "bubblewrap",
        at_once: int | None = None,
        store: SnapshotStore | None = None,
        durably: bool = True,
    ) -> None:
        self._backend = backend
        self._store = store
        self.durably = durably
        self._turns = asyncio.Semaphore(at_once or 2 * (os.cpu_count() or 1))
        self._open: set[LiveEnvironment] = set()

    async def open(self, spec: Spec) -> "LiveEnvironment":
        """A live sandbox; waits its turn to be started."""
        return self.keep(LiveEnvironment(self, await self.turn(lambda: open_session(spec, self._backend))))

    async def open_snapshot(self, snapshot: str, spec: Spec) -> "RewindableEnvironment":
        """A live sandbox on the tree of a snapshot, which can be saved and gone back to."""
        store = self._store
        if store is None:
            raise BadInput("this floor has no snapshot store; give it one")
        line = await self.turn(lambda: Rewindable(store, snapshot, spec, self._backend))
        return self.keep(RewindableEnvironment(self, line))

    def keep(self, environment: _E) -> _E:
        self._open.add(environment)
        return environment

    async def turn(self, work: Callable[[], _T]) -> _T:
        """Do something that takes a core, in a thread, when it is our turn."""
        async with self._turns:
            return await asyncio.to_thread(work)

    async def run(self, session: Session, command: str, wall_seconds: float | None) -> SessionResult:
        async with self._turns:
            try:
                return await asyncio.wrap_future(session.submit(command, wall_seconds))
            except asyncio.CancelledError:
                session.interrupt()
                raise

    def forget(self, environment: "LiveEnvironment") -> None:
        self._open.discard(environment)

    async def close(self) -> None:
        """End every sandbox that is still open."""
        await asyncio.gather(*(environment.close() for environment in list(self._open)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class LiveEnvironment:
    """A workspace in which hostile code runs, command after command."""

    def __init__(self, floor: Floor, line: Session | Rewindable) -> None:
        self._floor = floor
        self._line = line

    @property
    def _session(self) -> Session:
        return self._line if isinstance(self._line, Session) else self._line.session

    async def shell(self, command: str, wall_seconds: float | None = None) -> SessionResult:
        """Run a command in the environment's shell and say everything that is known about it."""
        return await self._floor.run(self._session, command, wall_seconds)

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
        self._floor.forget(self)
        await asyncio.to_thread(self._line.close)


class RewindableEnvironment(LiveEnvironment):
    """The same with a past: an `Environment` in the full sense of `core.protocols`."""

    def __init__(self, floor: Floor, line: Rewindable) -> None:
        super().__init__(floor, line)
        self._past = line

    async def snapshot(self) -> str:
        """Save the file tree and name what was saved."""
        return await self._floor.turn(lambda: self._past.snapshot(self._floor.durably))

    async def restore(self, snapshot: str) -> None:
        await self._floor.turn(lambda: self._past.restore(snapshot))

    async def fork(self, snapshot: str) -> Self:
        """A new environment that starts from a snapshot; this one is not touched."""
        line = await self._floor.turn(lambda: self._past.fork(snapshot))
        return self._floor.keep(type(self)(self._floor, line))
