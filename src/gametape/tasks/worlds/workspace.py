"""The `Workspace` of a world: in memory, without files or processes.

A snapshot id lists all calls before it, so any process that has the world can restore or fork it.
"""

import json
from collections.abc import Sequence
from typing import NoReturn, Self

from gametape.core.errors import BadInput
from gametape.core.messages import CommandResult
from gametape.core.protocols import ShellResult
from gametape.tasks.worlds.plan import WorldAction, WorldPlan
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.state import WorldReply, WorldState, apply_action, initial_state


class WorldWorkspace:
    """Counts turns by snapshots: the agent loop takes one at the start and after every turn, also after a turn without
    a call."""

    def __init__(self, spec: WorldSpec, plan: WorldPlan) -> None:
        self.spec, self.plan = spec, plan
        self.state: WorldState = initial_state(plan)
        self._turns: tuple[str, ...] = ()
        """The calls of each finished turn, as JSON, after an empty entry for the start."""
        self._calls: list[WorldAction] = []
        """The calls of the current turn."""

    @property
    def turn(self) -> int:
        """The current turn, counted from 1 once the first snapshot is taken."""
        return len(self._turns)

    def act(self, action: WorldAction) -> WorldReply:
        """Apply one tool call."""
        self._calls.append(action)
        self.state, reply = apply_action(
            self.plan, self.state, action, self.turn, delay=self.spec.error_delay, retry=self.spec.retry
        )
        return reply

    async def snapshot(self) -> str:
        self._turns = (*self._turns, json.dumps(self._calls))
        self._calls = []
        return f"[{','.join(self._turns)}]"

    async def restore(self, snapshot: str) -> None:
        """Replay all calls of the snapshot."""
        self.state, self._turns, self._calls = initial_state(self.plan), (), []
        for turn in _read(snapshot):
            for action in turn:
                self.act(action)
            await self.snapshot()

    async def fork(self, snapshot: str) -> Self:
        other = type(self)(self.spec, self.plan)
        await other.restore(snapshot)
        return other

    async def close(self) -> None:
        """Do nothing: no resources are held."""

    async def get(self, path: str) -> bytes:
        """The contents of an item or of the note, one value a line."""
        if path not in self.state.contents:
            raise BadInput(f"there is no {path[:80]!r} in this world")
        return "".join(f"{value}\n" for value in self.state.contents[path]).encode()

    async def put(self, path: str, content: bytes) -> None:  # noqa: ARG002
        _refuse()

    async def shell(self, command: str, wall_seconds: float | None = None) -> ShellResult:  # noqa: ARG002
        _refuse()

    async def run(self, argv: Sequence[str], *, timeout: float) -> CommandResult:  # noqa: ARG002
        _refuse()


def _read(snapshot: str) -> list[list[WorldAction]]:
    try:
        return [[WorldAction(tool, tuple(values)) for tool, values in turn] for turn in json.loads(snapshot)]
    except (ValueError, TypeError) as error:
        raise BadInput(f"no snapshot of a world: {snapshot[:80]!r}") from error


def _refuse() -> NoReturn:
    raise BadInput("a world is changed by its own tools only")
