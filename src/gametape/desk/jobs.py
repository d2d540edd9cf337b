"""What a kind of work sees of the desk: an order, steps that are kept, and what all work shares.

A work function knows nothing of what makes it durable. It does everything that costs or changes something within
`Steps.once`; between those it only computes. Killed at any instant, it is called again with the same order and goes on
behind the last step that was kept.
"""

import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gametape.core.errors import BadInput

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from gametape.desk.notifications import NotificationStore
    from gametape.desk.outbox import Outbox

Json = Any
"""What json can hold."""


class JobSteps(Protocol):
    """The durable side of one errand."""

    @property
    def key(self) -> str:
        """The errand's id; the idempotency key of an effect is f"{key}/{name}"."""
        ...

    async def once(self, name: str, act: Callable[[], Awaitable[Json]]) -> Json:
        """Run `act` and keep its result. A finished one is never run again, its result is returned; one that was cut
        off by a kill is run again from its beginning. Names are unique within an errand and asked in the same order
        each time."""
        ...

    async def now(self) -> float:
        """Seconds since the epoch, kept: a rerun sees the same answers."""
        ...

    async def cancelled(self) -> bool:
        """Whether somebody asked for the errand to end. Not kept: a rerun may see it earlier."""
        ...


@dataclass(frozen=True)
class Desk:
    """What all work shares. Made by `gametape.desk.desk.open_desk`."""

    home: Path
    database_url: str
    """Of the database; `sqlite:///FILE` or `postgresql://...`."""
    database: "Engine"
    """For the desk's own tables (database.py); each room of the desk may add its own."""
    outbox: "Outbox"
    notifications: "NotificationStore"


JobHandler = Callable[[Desk, JobSteps, dict[str, Json]], Awaitable[dict[str, Json]]]
"""What a kind does with an order. The result is the errand's; raising a `GametapeError` ends it with that error."""


@dataclass(frozen=True)
class Job:
    """Something to be done once. Handing in a key that is known does nothing: the first one's result is the answer."""

    kind: str
    """One of kinds.py."""
    key: str
    payload: dict[str, Json] = field(default_factory=dict)
    partition_key: str | None = None
    """Errands of one line run one at a time in the order they came: a thread's id, say. None: beside all others."""


JOB_HANDLERS = {
    "goal": "gametape.desk.goals.job:run_goal_job",
    "turn": "gametape.desk.threads.job:run_turn_job",
    "tick": "gametape.desk.heartbeats.job:run_tick_job",
}


@cache
def load_handler(kind: str) -> JobHandler:
    if kind not in JOB_HANDLERS:
        raise BadInput(f"{kind}: no kind of work; there are {', '.join(JOB_HANDLERS)}")
    module, name = JOB_HANDLERS[kind].split(":")
    handler: JobHandler = getattr(importlib.import_module(module), name)
    return handler
