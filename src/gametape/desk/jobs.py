"""Jobs: what a job handler gets from the desk, and which handler runs which kind of job.

A handler does not know the workflow engine. It does everything that costs or changes something within `JobSteps.once`,
and only computes in between. Killed at any instant, it is called again with the same payload and continues after the
last step whose result was stored.
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
"""A JSON value."""


class JobSteps(Protocol):
    """The durable steps of one job."""

    @property
    def key(self) -> str:
        """The job's id. The idempotency key of an effect is f"{key}/{name}"."""
        ...

    async def once(self, name: str, act: Callable[[], Awaitable[Json]]) -> Json:
        """Run `act` and store its result. A finished step is never run again: its result is returned. A step that a
        kill cut off is run again from its beginning. Names are unique within a job and come in the same order each
        time."""
        ...

    async def now(self) -> float:
        """Seconds since the epoch. The answer is stored: a rerun sees the same one."""
        ...

    async def cancelled(self) -> bool:
        """Whether somebody cancelled the job. Not stored: a rerun may see it earlier."""
        ...


@dataclass(frozen=True)
class Desk:
    """What all handlers share. Opened by `gametape.desk.desk.open_desk`."""

    home: Path
    database_url: str
    """The database's address; `sqlite:///FILE` or `postgresql://...`."""
    database: "Engine"
    """For the desk's own tables (database.py)."""
    outbox: "Outbox"
    notifications: "NotificationStore"


JobHandler = Callable[[Desk, JobSteps, dict[str, Json]], Awaitable[dict[str, Json]]]
"""Turns a job's payload into its result. A `GametapeError` that it raises ends the job with that error."""


@dataclass(frozen=True)
class Job:
    """Something to be done once. Submitting a known key does nothing: the first job's result is the answer."""

    kind: str
    """A key of `JOB_HANDLERS`."""
    key: str
    payload: dict[str, Json] = field(default_factory=dict)
    partition_key: str | None = None
    """Jobs with the same partition key, such as a thread's id, run one at a time in the order of submission. None:
    in parallel with all others."""


JOB_HANDLERS = {
    "goal": "gametape.desk.goals.job:run_goal_job",
    "turn": "gametape.desk.threads.job:run_turn_job",
    "tick": "gametape.desk.heartbeats.job:run_tick_job",
}


@cache
def load_handler(kind: str) -> JobHandler:
    if kind not in JOB_HANDLERS:
        raise BadInput(f"{kind}: unknown kind of job; there are {', '.join(JOB_HANDLERS)}")
    module, name = JOB_HANDLERS[kind].split(":")
    handler: JobHandler = getattr(importlib.import_module(module), name)
    return handler
