"""Tasks in a sandbox as assignments: many rollouts at once on one machine, each judged by the verifier.

Nothing outlives the playground: its snapshots lie in a temporary directory, and every environment takes its own along
when it is closed.
"""

import asyncio
import contextlib
import tempfile
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from gametape.agent.agent_state import AgentState
from gametape.agent.constraints import Constraints
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

_STORE_BYTES = 4 << 30
_KNOWN = 256
"""Tasks whose starting snapshot and verifier are kept."""


class TaskSandboxPool:
    """Opens sandboxes on starting trees and judges what was made of them. To be entered; leaving it removes all."""

    def __init__(
        self,
        home: Path,
        max_concurrent: int | None = None,
        profile: Profile = "train",
        reward_kind: RewardKind = "layered",
        store_bytes: int = _STORE_BYTES,
    ) -> None:
        """`at_once` bounds how many commands, starts and verdicts run at a time, not how many rollouts there are."""
        self._home, self._at_once, self._store_bytes = home, max_concurrent, store_bytes
        self._profile, self._kind = profile, reward_kind
        self._known: OrderedDict[str, tuple[asyncio.Future[str], Verifier]] = OrderedDict()

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            scratch = stack.enter_context(_scratch("gametape-playground-"))
            self._store = stack.enter_context(SnapshotStore(scratch / "snapshots", self._store_bytes))
            self._crew = stack.enter_context(ZygotePool(size=2))
            floor = SandboxScheduler(max_concurrent=self._at_once, store=self._store, durably=False)
            self._floor = await stack.enter_async_context(floor)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def open_workspace(self, subject: LoadedTask) -> "EpisodeWorkspace":
        """A live sandbox on the task's starting tree. Raises `SandboxError` where the machine cannot give one."""
        try:
            start = await asyncio.shield(self._of(subject)[0])
        except GametapeError:
            self._known.pop(subject.digest, None)  # so that it is tried again
            raise
        return EpisodeWorkspace(self._store, await self._floor.open_snapshot(start, task_sandbox_spec(subject)), start)

    async def verify_workspace(self, subject: LoadedTask, workspace: "EpisodeWorkspace") -> Verdict:
        """On the files as the last finished turn left them."""
        verifier = self._of(subject)[1]

        def verify() -> Verdict:
            with _scratch("gametape-judged-") as scratch:
                self._store.export(workspace.last_snapshot, scratch / "workspace")
                return verifier.verify(scratch / "workspace", self._profile, self._kind)

        return await self._floor.run_in_slot(verify)

    def changed_paths(self, before: str, after: str) -> Iterable[str]:
        """The paths that differ between two snapshots."""
        return self._store.diff(before, after)

    def _of(self, subject: LoadedTask) -> tuple[asyncio.Future[str], Verifier]:
        """What is learned of a task once; of those not seen for long it is learned again."""
        if subject.digest not in self._known:
            start = asyncio.ensure_future(
                self._floor.run_in_slot(lambda: snapshot_start(self._store, subject, durably=False))
            )
            self._known[subject.digest] = start, Verifier(subject, self._home, self._crew)
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)
        self._known.move_to_end(subject.digest)
        return self._known[subject.digest]


class TaskEnvironment:
    """An `Assignment`: a task of a playground, put in one way."""

    def __init__(
        self, sandboxes: TaskSandboxPool, subject: LoadedTask, presentation: TaskPresentation, bucket: str = ""
    ) -> None:
        self._playground, self._presentation = sandboxes, presentation
        self.subject = subject
        self.bucket = bucket or subject.task.name

    @property
    def name(self) -> str:
        return self.subject.task.name

    @property
    def system_prompt(self) -> str:
        return self._presentation.system_prompt

    @property
    def user_prompt(self) -> str:
        return self._presentation.user_prompt

    @property
    def max_turns(self) -> int:
        return self._presentation.max_turns

    @property
    def horizon(self) -> int:
        """How many things have to go right one after the other: the stages, where the task has them."""
        return len(self.subject.task.stages) or 1

    @property
    def constraints(self) -> Constraints:
        return self._presentation.constraints

    def tools(self) -> Sequence[Tool]:
        return self.tools_for_state(AgentState())

    def tools_for_state(self, state: AgentState) -> Sequence[Tool]:
        """Tools that share what the agent has in hand with the rollout that is given them."""
        return self._presentation.tools(state)

    def changed_paths(self, before: str, after: str) -> Iterable[str]:
        return self._playground.changed_paths(before, after)

    async def reset(self) -> Workspace:
        return await self._playground.open_workspace(self.subject)

    async def score(self, workspace: Workspace) -> EpisodeScore:
        if not isinstance(workspace, EpisodeWorkspace):
            raise BadInput(f"{self.name}: what is to be judged was not opened by this assignment")
        verdict = await self._playground.verify_workspace(self.subject, workspace)
        return EpisodeScore(
            passed=verdict.passed,
            reward=verdict.reward,
            detail=_detail(verdict),
            hacked=verdict.proven,
            verdict=verdict,
            checks={check.name: check.score for check in verdict.checks},
        )


class EpisodeWorkspace:
    """A live sandbox that removes the snapshots it made when it is closed. Forks have their own life: what they were
    forked from may be closed, but can then no longer be gone back to."""

    def __init__(self, store: SnapshotStore, inner: RewindableWorkspace, start: str) -> None:
        self._store, self._inner = store, inner
        self._made: list[str] = []
        self.last_snapshot = start
        """The file tree as it was last saved or gone back to."""

    async def shell(self, command: str, wall_seconds: float | None = None) -> SessionResult:
        return await self._inner.shell(command, wall_seconds)

    async def run(self, argv: Sequence[str], *, timeout: float) -> CommandResult:
        return await self._inner.run(argv, timeout=timeout)

    async def put(self, path: str, content: bytes) -> None:
        await self._inner.put(path, content)

    async def get(self, path: str) -> bytes:
        return await self._inner.get(path)

    async def snapshot(self) -> str:
        """Where there is no room, this environment's own older snapshots make it, all but the first and the last."""
        try:
            made = await self._inner.snapshot()
        except StoreFull:
            older, self._made[1:-1] = self._made[1:-1], []
            if not older:
                raise
            await self._forget(older)
            made = await self._inner.snapshot()
        self._made.append(made)
        self.last_snapshot = made
        return made

    async def restore(self, snapshot: str) -> None:
        await self._inner.restore(snapshot)
        self.last_snapshot = snapshot

    async def fork(self, snapshot: str) -> "EpisodeWorkspace":
        return EpisodeWorkspace(self._store, await self._inner.fork(snapshot), snapshot)

    async def close(self) -> None:
        await self._inner.close()
        made, self._made = self._made, []
        await self._forget(made)

    async def _forget(self, snapshots: Sequence[str]) -> None:
        for snapshot in snapshots:
            await asyncio.to_thread(self._store.remove, snapshot)


@contextlib.contextmanager
def _scratch(prefix: str) -> Iterator[Path]:
    """A temporary directory that can be removed whatever an agent has put there: trees too deep for `shutil`, say."""
    path = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield path
    finally:
        remove_tree(path)


def _detail(verdict: Verdict) -> str:
    tests = verdict.tests
    told = f"{tests.passed} of {tests.expected} tests"
    return f"{told}, {verdict.integrity[0].rule}" if verdict.integrity else told
