"""Tasks as environments: many episodes at once in sandboxes of one machine, each scored by the verifier.

Snapshots lie in a temporary directory of the pool, and every workspace removes its own when it is closed.
"""

import asyncio
import contextlib
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from gametape.agent.agent_state import AgentState
from gametape.agent.task_setup import TaskPresentation, snapshot_start, task_sandbox_spec
from gametape.core.environment import EpisodeScore
from gametape.core.errors import BadInput, GametapeError
from gametape.core.messages import CommandResult
from gametape.core.protocols import Tool, Workspace
from gametape.core.verdict import Verdict
from gametape.record.loaded_task import LoadedTask
from gametape.sandbox.result import SessionResult
from gametape.sandbox.scheduler import RewindableWorkspace, SandboxScheduler
from gametape.sandbox.snapshots.cleanup import remove_tree
from gametape.sandbox.snapshots.errors import StoreFull
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.verify.layers.profiles import Profile
from gametape.verify.reward import RewardKind
from gametape.verify.runner import ZygotePool
from gametape.verify.verifier import Verifier
from gametape.verify.verifier_pool import VerifierPool

_STORE_BYTES = 4 << 30
_MAX_CACHED_TASKS = 256
"""Tasks whose starting snapshot and verifier are cached."""


class TaskSandboxPool:
    """Opens sandboxes on starting trees and verifies the results. An async context; leaving it removes its files."""

    def __init__(
        self,
        home: Path,
        max_concurrent: int | None = None,
        profile: Profile = "train",
        reward_kind: RewardKind = "layered",
        store_bytes: int = _STORE_BYTES,
        verifiers: int = 0,
        preparing: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        """`max_concurrent` bounds the commands, starts and verdicts that run at a time, not the number of rollouts.
        With `verifiers` so many processes of their own verify, and verdicts are bounded by their number alone;
        `preparing` is entered for as long as they prepare a task."""
        self._verifiers, self._preparing = verifiers, preparing
        self._home, self._max_concurrent, self._store_bytes = home, max_concurrent, store_bytes
        self.profile, self._reward_kind = profile, reward_kind
        self._cached: OrderedDict[str, tuple[asyncio.Future[str], Verifier]] = OrderedDict()

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            scratch = stack.enter_context(_scratch("gametape-sandboxes-"))
            self._store = stack.enter_context(SnapshotStore(scratch / "snapshots", self._store_bytes))
            self._zygotes = stack.enter_context(ZygotePool(size=2))
            scheduler = SandboxScheduler(max_concurrent=self._max_concurrent, store=self._store, durably=False)
            self._scheduler = await stack.enter_async_context(scheduler)
            self._verifier_pool: VerifierPool | None = None
            if self._verifiers:
                pool = VerifierPool(self._home, self._verifiers, self._preparing)
                self._verifier_pool = await stack.enter_async_context(pool)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def prepare(self, task: LoadedTask) -> None:
        """Begin to prepare the verifier of a task that will soon be needed, where verifiers have room."""
        if self._verifier_pool:
            self._verifier_pool.prepare(task, ahead=True)

    async def open_workspace(self, task: LoadedTask) -> "EpisodeWorkspace":
        """A live sandbox on the task's starting tree. Raises `SandboxError` where the machine cannot give one. The
        task's verifier is prepared meanwhile, where it has a process of its own."""
        if self._verifier_pool:
            self._verifier_pool.prepare(task)
        try:
            start = await asyncio.shield(self._cached_task(task)[0])
        except GametapeError:
            self._cached.pop(task.digest, None)  # so that it is tried again
            raise
        return EpisodeWorkspace(self._store, await self._scheduler.open_snapshot(start, task_sandbox_spec(task)), start)

    async def verify_workspace(self, task: LoadedTask, workspace: "EpisodeWorkspace") -> Verdict:
        """The verdict on the files as the last finished turn left them."""
        with _scratch("gametape-verified-") as scratch:
            files = scratch / "workspace"
            await asyncio.to_thread(self._store.export, workspace.last_snapshot, files)
            if self._verifier_pool:
                return await self._verifier_pool.verify(task, files, self.profile, self._reward_kind)
            verifier = self._cached_task(task)[1]
            return await self._scheduler.run_in_slot(lambda: verifier.verify(files, self.profile, self._reward_kind))

    def changed_paths(self, before: str, after: str) -> Iterable[str]:
        """The paths that differ between two snapshots."""
        return self._store.diff(before, after)

    def _cached_task(self, task: LoadedTask) -> tuple[asyncio.Future[str], Verifier]:
        """The starting snapshot and the verifier of a task, cached for the most recently used tasks."""
        if task.digest not in self._cached:
            start = asyncio.ensure_future(
                self._scheduler.run_in_slot(lambda: snapshot_start(self._store, task, durably=False))
            )
            self._cached[task.digest] = start, Verifier(task, self._home, self._zygotes)
            if len(self._cached) > _MAX_CACHED_TASKS:
                self._cached.popitem(last=False)
        self._cached.move_to_end(task.digest)
        return self._cached[task.digest]


class TaskEnvironment:
    """An `Environment`: a task in a sandbox pool, presented in one way."""

    def __init__(
        self, sandboxes: TaskSandboxPool, task: LoadedTask, presentation: TaskPresentation, bucket: str = ""
    ) -> None:
        self._sandboxes, self.task = sandboxes, task
        self.name = task.task.name
        self.bucket = bucket or self.name
        self.system_prompt, self.user_prompt = presentation.system_prompt, presentation.user_prompt
        self.max_turns, self.constraints = presentation.max_turns, presentation.constraints
        self.tool_seconds = presentation.tool_seconds
        self.tools_for_state = presentation.tools
        """Makes tools that share the agent's state with its rollout."""

    @property
    def horizon(self) -> int:
        """The number of stages, or 1: how many things must go right one after the other."""
        return len(self.task.task.stages) or 1

    def prepare(self) -> None:
        """See `TaskSandboxPool.prepare`."""
        self._sandboxes.prepare(self.task)

    def tools(self) -> Sequence[Tool]:
        return self.tools_for_state(AgentState())

    def changed_paths(self, before: str, after: str) -> Iterable[str]:
        return self._sandboxes.changed_paths(before, after)

    async def reset(self) -> Workspace:
        return await self._sandboxes.open_workspace(self.task)

    async def score(self, workspace: Workspace) -> EpisodeScore:
        if not isinstance(workspace, EpisodeWorkspace):
            raise BadInput(f"{self.name}: the workspace to score was not opened by this environment")
        verdict = await self._sandboxes.verify_workspace(self.task, workspace)
        return EpisodeScore(
            passed=verdict.passed,
            reward=verdict.reward,
            detail=_detail(verdict),
            hacked=verdict.proven,
            verdict=verdict,
            checks={check.name: check.score for check in verdict.checks},
        )


class EpisodeWorkspace:
    """A live sandbox that removes its snapshots when it is closed. A fork outlives its origin, but cannot return to the
    origin's snapshots once that is closed."""

    def __init__(self, store: SnapshotStore, inner: RewindableWorkspace, start: str) -> None:
        self._store, self._inner = store, inner
        self._snapshots: list[str] = []
        self.last_snapshot = start
        """The snapshot that was last taken or restored."""

    async def shell(self, command: str, wall_seconds: float | None = None) -> SessionResult:
        return await self._inner.shell(command, wall_seconds)

    async def run(self, argv: Sequence[str], *, timeout: float) -> CommandResult:
        return await self._inner.run(argv, timeout=timeout)

    async def put(self, path: str, content: bytes) -> None:
        await self._inner.put(path, content)

    async def get(self, path: str) -> bytes:
        return await self._inner.get(path)

    async def snapshot(self) -> str:
        """Where the store is full, this workspace's older snapshots are removed, all but the first and the last."""
        try:
            snapshot = await self._inner.snapshot()
        except StoreFull:
            older, self._snapshots[1:-1] = self._snapshots[1:-1], []
            if not older:
                raise
            await self._remove(older)
            snapshot = await self._inner.snapshot()
        self._snapshots.append(snapshot)
        self.last_snapshot = snapshot
        return snapshot

    async def restore(self, snapshot: str) -> None:
        await self._inner.restore(snapshot)
        self.last_snapshot = snapshot

    async def fork(self, snapshot: str) -> "EpisodeWorkspace":
        return EpisodeWorkspace(self._store, await self._inner.fork(snapshot), snapshot)

    async def close(self) -> None:
        await self._inner.close()
        snapshots, self._snapshots = self._snapshots, []
        await self._remove(snapshots)

    async def _remove(self, snapshots: Sequence[str]) -> None:
        for snapshot in snapshots:
            await asyncio.to_thread(self._store.remove, snapshot)


@contextlib.contextmanager
def _scratch(prefix: str) -> Iterator[Path]:
    """A temporary directory that is removed whatever an agent has put there, such as trees too deep for `shutil`."""
    path = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield path
    finally:
        remove_tree(path)


def _detail(verdict: Verdict) -> str:
    tests = verdict.tests
    counts = f"{tests.passed} of {tests.expected} tests"
    return f"{counts}, {verdict.integrity[0].rule}" if verdict.integrity else counts
