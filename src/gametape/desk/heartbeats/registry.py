"""The heartbeats of a home: their files under HOME/heartbeats, their state, and the log of their ticks."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
from pydantic import TypeAdapter

from gametape.core.errors import BadInput
from gametape.desk.database import heartbeats, insert_once, ticks
from gametape.desk.heartbeats.cadence import CadenceState
from gametape.desk.heartbeats.config import HeartbeatConfig, check_name, load_config
from gametape.desk.jobs import Desk, Job
from gametape.desk.threads.thread import new_thread_id, thread_directory
from gametape.record.atomic import write_atomically

TICKS = "heartbeat/"
"""The prefix of every tick's key."""


@dataclass(frozen=True)
class HeartbeatState:
    """The state of a heartbeat, stored as JSON."""

    state: CadenceState
    paused: bool = False
    seen: dict[str, str] = field(default_factory=dict)
    """The last fingerprints of its event sources."""
    event: str = ""
    """The event that waits for its tick."""
    pending: str = ""
    """The key of the tick that has begun and not ended."""
    depth: int = 0
    """How many heartbeats woke each other up to its last tick; 0: its own time or another event."""
    thread: str = field(default_factory=new_thread_id)
    """The id of its own thread, which is created when it is first needed."""


_STATE = TypeAdapter(HeartbeatState)


def parse_state(text: str) -> HeartbeatState:
    """A stored state; ValueError for a text that is none."""
    return _STATE.validate_json(text)


def dump_state(state: HeartbeatState) -> str:
    return _STATE.dump_json(state).decode()


@dataclass(frozen=True)
class TickRecord:
    """The outcome of a tick."""

    key: str
    heartbeat: str
    scheduled: float
    at: float
    outcome: str
    """`asked`, `nothing` (asked, and the agent had nothing to say), `digest`, `guard`, `budget`, `refused` or
    `failed`."""
    detail: str
    tokens: int
    cost_usd: float


def path_of(desk: Desk, name: str) -> Path:
    return desk.home / "heartbeats" / f"{check_name(name)}.md"


def heartbeat_names(desk: Desk) -> list[str]:
    return sorted(path.stem for path in (desk.home / "heartbeats").glob("*.md") if not path.name.startswith("."))


def read_config(desk: Desk, name: str) -> HeartbeatConfig:
    path = path_of(desk, name)
    if not path.exists():
        raise _unknown(name)
    return load_config(path)


def _unknown(name: str) -> BadInput:
    return BadInput(f"{name}: no such heartbeat; `gametape heartbeat list` shows them")


def add(desk: Desk, name: str, content: str, seen: dict[str, str] | None = None) -> None:
    """Write a heartbeat's file and start it; `seen` has the current fingerprints of its sources. An existing one is
    not replaced."""
    path = path_of(desk, name)
    if path.exists():
        raise BadInput(f"{name}: this heartbeat exists already; remove it first, or edit {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    _delete_state(desk, name)
    write_atomically(path, content.encode())
    try:
        load_state(desk, name)
        update_state(desk, name, lambda old: replace(old, seen=seen or {}))
    except BaseException:
        path.unlink()
        raise


def check_circle(desk: Desk, name: str, config: HeartbeatConfig) -> None:
    """Raise `BadInput` for a heartbeat that would wake itself, over others or at once."""
    chain = [name]
    while config.event is not None and (waker := config.event.heartbeat):
        chain.append(waker)
        if waker == name:
            raise BadInput(f"{name}: would wake itself: {' wakes '.join(reversed(chain))}")
        try:
            config = read_config(desk, waker)
        except BadInput:
            return  # there is none, or none that could tick
        if waker in chain[:-1]:
            return  # a circle of others, which this one is not part of


def remove(desk: Desk, name: str) -> None:
    """Delete a heartbeat's file and state; the log of its ticks stays."""
    path = path_of(desk, name)
    if not path.exists():
        raise _unknown(name)
    path.unlink()
    _delete_state(desk, name)


def load_state(desk: Desk, name: str) -> HeartbeatState:
    """The state of a heartbeat. A new file starts with a fresh state."""
    query = sa.select(heartbeats.c.state).where(heartbeats.c.name == name)
    with desk.database.connect() as connection:
        stored = connection.scalar(query)
    if stored is None:
        with desk.database.begin() as connection:
            fresh = dump_state(HeartbeatState(CadenceState(time.time())))
            insert_once(connection, heartbeats, {"name": name, "state": fresh})
            stored = connection.execute(query).scalar_one()
    return parse_state(stored)


def update_state(desk: Desk, name: str, update: Callable[[HeartbeatState], HeartbeatState]) -> HeartbeatState:
    """Change the state, with a lock against concurrent changes."""
    row = heartbeats.c.name == name
    with desk.database.begin() as connection:
        connection.execute(sa.update(heartbeats).where(row).values(name=name))  # takes the lock before it reads
        text = connection.scalar(sa.select(heartbeats.c.state).where(row))
        if text is None:
            raise _unknown(name)
        changed = update(parse_state(text))
        connection.execute(sa.update(heartbeats).where(row).values(state=dump_state(changed)))
    return changed


def set_paused(desk: Desk, name: str, now: float, pause: bool) -> None:
    """Pause or resume. Resuming starts afresh: ticks that were missed during the pause are not made up for."""
    path_of(desk, name)
    read_config(desk, name)
    load_state(desk, name)

    def update(old: HeartbeatState) -> HeartbeatState:
        if pause or not old.paused:
            return replace(old, paused=pause)
        return replace(old, paused=False, state=replace(old.state, anchor=now, last=now), event="", seen={})

    update_state(desk, name, update)


def tick_key(name: str, at: float) -> str:
    """A tick's id: the same heartbeat and instant are the same tick."""
    moment = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{TICKS}{name}/{moment}"


def tick_job(desk: Desk, name: str, config: HeartbeatConfig, key: str, reason: str) -> Job:
    """The job of a tick, with the thread that it asks in as its partition key."""
    thread = thread_directory(desk.home, config.thread).root.name if config.thread else load_state(desk, name).thread
    return Job("tick", key, {"heartbeat": name, "thread": thread, "reason": reason}, thread)


def record_tick(desk: Desk, record: TickRecord, update: Callable[[HeartbeatState], HeartbeatState]) -> None:
    """Store the outcome of a tick and the new state of its heartbeat in one transaction, once by the tick's key."""
    row = heartbeats.c.name == record.heartbeat
    with desk.database.begin() as connection:
        if not insert_once(connection, ticks, asdict(record)):
            return
        text = connection.scalar(sa.select(heartbeats.c.state).where(row))
        if text is not None:
            connection.execute(sa.update(heartbeats).where(row).values(state=dump_state(update(parse_state(text)))))


def tick_log(desk: Desk, name: str, limit: int = 50) -> list[TickRecord]:
    """The latest ticks of a heartbeat, oldest first."""
    query = sa.select(ticks).where(ticks.c.heartbeat == name).order_by(ticks.c.at.desc()).limit(limit)
    with desk.database.connect() as connection:
        return [TickRecord(**row) for row in reversed(connection.execute(query).mappings().all())]


def last_with_outcome(desk: Desk, name: str, outcome: str) -> float | None:
    """When the latest tick with this outcome was; None if there was none."""
    query = sa.select(sa.func.max(ticks.c.at)).where(ticks.c.heartbeat == name, ticks.c.outcome == outcome)
    with desk.database.connect() as connection:
        at = connection.scalar(query)
    return None if at is None else float(at)


def spent_since(desk: Desk, name: str, moment: float) -> tuple[int, float]:
    """Tokens and dollars since a moment."""
    total = sa.select(
        sa.func.coalesce(sa.func.sum(ticks.c.tokens), 0), sa.func.coalesce(sa.func.sum(ticks.c.cost_usd), 0)
    )
    with desk.database.connect() as connection:
        tokens, usd = connection.execute(total.where(ticks.c.heartbeat == name, ticks.c.at >= moment)).one()
    return int(tokens), float(usd)


def last_spent(desk: Desk, name: str) -> tuple[int, float]:
    """Tokens and dollars of the latest tick that cost any."""
    query = sa.select(ticks.c.tokens, ticks.c.cost_usd).where(
        ticks.c.heartbeat == name, sa.or_(ticks.c.tokens > 0, ticks.c.cost_usd > 0)
    )
    with desk.database.connect() as connection:
        stored = connection.execute(query.order_by(ticks.c.at.desc()).limit(1)).one_or_none()
    return (int(stored[0]), float(stored[1])) if stored else (0, 0.0)


def _delete_state(desk: Desk, name: str) -> None:
    with desk.database.begin() as connection:
        connection.execute(sa.delete(heartbeats).where(heartbeats.c.name == name))
