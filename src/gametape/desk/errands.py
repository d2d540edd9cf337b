"""What a kind of work sees of the desk: an order, steps that are kept, and what all work shares.

A work function knows nothing of what makes it durable. It does everything that costs or changes something within
`Steps.once`; between those it only computes. Killed at any instant, it is called again with the same order and goes on
behind the last step that was kept.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from gametape.desk.effects import Effects
    from gametape.desk.notify import Notices
    from gametape.desk.outbox import Outbox

Json = Any
"""What json can hold."""


class Steps(Protocol):
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
    url: str
    """Of the database; `sqlite:///FILE` or `postgresql://...`."""
    database: "Engine"
    """For the desk's own tables (database.py); each room of the desk may add its own."""
    effects: "Effects"
    outbox: "Outbox"
    notices: "Notices"


Work = Callable[[Desk, Steps, dict[str, Json]], Awaitable[dict[str, Json]]]
"""What a kind does with an order. The result is the errand's; raising a `GametapeError` ends it with that error."""


@dataclass(frozen=True)
class Errand:
    """Something to be done once. Handing in a key that is known does nothing: the first one's result is the answer."""

    kind: str
    """One of kinds.py."""
    key: str
    order: dict[str, Json] = field(default_factory=dict)
    line: str | None = None
    """Errands of one line run one at a time in the order they came: a thread's id, say. None: beside all others."""
