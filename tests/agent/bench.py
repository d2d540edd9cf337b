"""A rollout of a scripted policy in a real sandbox, for tests of what surrounds it."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gametape.agent.constraints import Constraints
from gametape.agent.limits import Limits
from gametape.agent.recording import InMemory, Recorder
from gametape.agent.rollout import Rollout, Setting
from gametape.agent.tools import standard_tools
from gametape.core.messages import Sampling
from gametape.core.protocols import Tool
from gametape.engines.conversation import Model
from gametape.engines.scripted import ScriptedCall, ScriptedTurn, scripted_model
from gametape.sandbox.backend import Spec
from gametape.sandbox.live import Floor
from gametape.sandbox.snapshots.store import SnapshotStore


def says(text: str, *calls: tuple[str, dict[str, Any]]) -> ScriptedTurn:
    return ScriptedTurn(text=text, tool_calls=[ScriptedCall(name=name, arguments=given) for name, given in calls])


def runs(command: str, said: str = "I run it.") -> ScriptedTurn:
    return says(said, ("shell", {"command": command}))


DONE = says("I am done.", ("finish", {"summary": "done", "confidence": 1.0}))


class Bench:
    """Everything a rollout needs, in one place."""

    def __init__(self, floor: Floor, store: SnapshotStore, model: Model, limits: Limits, more: Sequence[Tool]) -> None:
        self.floor, self.store, self.model = floor, store, model
        self.limits, self.more = limits, more
        self.constraints = Constraints()

    @property
    def setting(self) -> Setting:
        return Setting(
            toolmaker=lambda work: [*standard_tools(work), *self.more],
            converse=lambda: self.model.converse(Sampling(temperature=0.0), "test"),
            window=self.model.window,
            limits=self.limits,
            constraints=self.constraints,
            changed=self.store.diff,
        )

    async def begin(self, start: str, recorder: Recorder | None = None) -> Rollout:
        environment = await self.floor.open_snapshot(start, Spec())
        return await Rollout.begin(self.setting, environment, recorder or InMemory(), "You are an agent.", "Do it.")


@asynccontextmanager
async def bench(
    tmp_path: Path,
    turns: Sequence[ScriptedTurn] = (),
    *,
    files: dict[str, str] | None = None,
    model: Model | None = None,
    limits: Limits | None = None,
    more: Iterable[Tool] = (),
) -> AsyncIterator[tuple[Bench, str]]:
    """A bench, and the snapshot that rollouts on it start from."""
    start = tmp_path / "start"
    start.mkdir()
    for name, text in (files or {}).items():
        (start / name).parent.mkdir(parents=True, exist_ok=True)
        (start / name).write_text(text)
    with SnapshotStore(tmp_path / "store") as store:
        async with Floor(store=store) as floor:
            model = model or scripted_model("scripted", turns)
            yield Bench(floor, store, model, limits or Limits(), [*more]), store.import_tree(start)
