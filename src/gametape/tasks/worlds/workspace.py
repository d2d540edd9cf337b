"""Where a world is played: an `Environment` without files or processes, whose past costs nothing to keep.

A snapshot is named by all that was done before it, so any process that has the world can go back to it or fork there.
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
    """The loop takes a snapshot at the start and after every turn: this is how the world counts turns, also those in
    which nothing was done."""

    def __init__(self, spec: WorldSpec, plan: WorldPlan) -> None:
        self.spec, self.plan = spec, plan
        self.state: WorldState = initial_state(plan)
        self._turns: tuple[str, ...] = ()
        """What was done in each turn that is over, as JSON; before the first turn there is an empty one."""
        self._calls: list[WorldAction] = []
        """What has been done in this one."""

    @property
    def turn(self) -> int:
        """The turn in hand, counted from 1 once the first snapshot is taken."""
        return len(self._turns)

    def act(self, action: WorldAction) -> WorldReply:
        """One call of a tool."""
        self._calls.append(action)
        self.state, told = apply_action(
            self.plan, self.state, action, self.turn, delay=self.spec.error_delay, retry=self.spec.retry
        )
        return told

    async def snapshot(self) -> str:
        self._turns = (*self._turns, json.dumps(self._calls))
        self._calls = []
        return f"[{','.join(self._turns)}]"

    async def restore(self, snapshot: str) -> None:
        """Do everything again."""
        self.state, self._turns, self._calls = initial_state(self.plan), (), []
        for turn in _read(snapshot):
            for move in turn:
                self.act(move)
            await self.snapshot()

    async def fork(self, snapshot: str) -> Self:
        other = type(self)(self.spec, self.plan)
        await other.restore(snapshot)
        return other

    async def close(self) -> None:
        """Nothing is held."""

    async def get(self, path: str) -> bytes:
        """What a thing, or the note, holds: a line each."""
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
