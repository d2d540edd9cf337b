"""A rollout of a scripted policy in a real sandbox, for tests of what surrounds it."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gametape.agent.constraints import Constraints
from gametape.agent.limits import RolloutLimits
from gametape.agent.recorder import MemoryRecorder, StepRecorder
from gametape.agent.rollout import Rollout, RolloutConfig
from gametape.agent.tools import standard_tools
from gametape.core.messages import Sampling
from gametape.core.protocols import Tool
from gametape.engines.conversation import Model
from gametape.engines.scripted import ScriptedCall, ScriptedTurn, scripted_model
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.scheduler import SandboxScheduler
from gametape.sandbox.snapshots.store import SnapshotStore


def says(text: str, *calls: tuple[str, dict[str, Any]]) -> ScriptedTurn:
    return ScriptedTurn(text=text, tool_calls=[ScriptedCall(name=name, arguments=given) for name, given in calls])


def runs(command: str, said: str = "I run it.") -> ScriptedTurn:
    return says(said, ("shell", {"command": command}))


DONE = says("I am done.", ("finish", {"summary": "done", "confidence": 1.0}))


class Bench:
    """Everything a rollout needs, in one place."""

    def __init__(
        self,
        scheduler: SandboxScheduler,
        store: SnapshotStore,
        model: Model,
        limits: RolloutLimits,
        more: Sequence[Tool],
    ) -> None:
        self.scheduler, self.store, self.model = scheduler, store, model
        self.limits, self.more = limits, more
        self.constraints = Constraints()

    @property
    def config(self) -> RolloutConfig:
        return RolloutConfig(
            model=self.model,
            make_tools=lambda state: [*standard_tools(state), *self.more],
            name="test",
            sampling=Sampling(temperature=0.0),
            limits=self.limits,
            constraints=self.constraints,
            changed_paths=self.store.diff,
        )

    async def begin(self, start: str, recorder: StepRecorder | None = None) -> Rollout:
        workspace = await self.scheduler.open_snapshot(start, SandboxSpec())
        return await Rollout.begin(self.config, workspace, recorder or MemoryRecorder(), "You are an agent.", "Do it.")


@asynccontextmanager
async def bench(
    tmp_path: Path,
    turns: Sequence[ScriptedTurn] = (),
    *,
    files: dict[str, str] | None = None,
    model: Model | None = None,
    limits: RolloutLimits | None = None,
    more: Iterable[Tool] = (),
) -> AsyncIterator[tuple[Bench, str]]:
    """A bench, and the snapshot that rollouts on it start from."""
    start = tmp_path / "start"
    start.mkdir()
    for name, text in (files or {}).items():
        (start / name).parent.mkdir(parents=True, exist_ok=True)
        (start / name).write_text(text)
    with SnapshotStore(tmp_path / "store") as store:
        async with SandboxScheduler(store=store) as scheduler:
            model = model or scripted_model("scripted", turns)
            yield Bench(scheduler, store, model, limits or RolloutLimits(), [*more]), store.import_tree(start)
