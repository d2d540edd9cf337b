"""The heartbeats of a home: their files under HOME/heartbeats, where each stands, and what its ticks came to."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from gametape.core.errors import BadInput
from gametape.desk.database import heartbeats, insert_once, ticks
from gametape.desk.heartbeats.cadence import CadenceState
from gametape.desk.heartbeats.config import HeartbeatConfig, check_name, load_config
from gametape.desk.jobs import Desk, Job
from gametape.desk.threads.thread import new_thread_id, thread_directory
from gametape.record.atomic import write_atomically

TICKS = "heartbeat/"
"""How the key of every tick begins."""


@dataclass(frozen=True)
class HeartbeatState:
    """Where a heartbeat stands; what the database keeps of it."""

    state: CadenceState
    paused: bool = False
    seen: dict[str, str] = field(default_factory=dict)
    """The fingerprints of its sources, as they were last seen."""
    event: str = ""
    """What was seen and has not been ticked for yet."""
    pending: str = ""
    """The key of the tick that was begun and has not ended."""
    thread: str = field(default_factory=new_thread_id)
    """Its own, which is made when it is first needed."""


@dataclass(frozen=True)
class TickRecord:
    """What a tick came to."""

    key: str
    heartbeat: str
    scheduled: float
    at: float
    outcome: str
    """`asked`, `nothing` (asked, and there was nothing to say), `guard`, `budget`, `refused` or `failed`."""
    detail: str
    tokens: int
    cost_usd: float


def path_of(desk: Desk, name: str) -> Path:
    return desk.home / "heartbeats" / f"{check_name(name)}.md"


def heartbeat_names(desk: Desk) -> list[str]:
    return sorted(path.stem for path in (desk.home / "heartbeats").glob("*.md") if not path.name.startswith("."))


def read_config(desk: Desk, name: str) -> HeartbeatConfig:
    return load_config(path_of(desk, name))


def add(desk: Desk, name: str, content: str, seen: dict[str, str] | None = None) -> None:
    """Write a heartbeat's file and begin it now; `seen` is what its sources look like. One that is there is not
    replaced."""
    path = path_of(desk, name)
    if path.exists():
        raise BadInput(f"{name}: there is such a heartbeat already; remove it first, or edit {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    _delete_state(desk, name)
    write_atomically(path, content.encode())
    try:
        load_state(desk, name)
        update_state(desk, name, lambda old: replace(old, seen=seen or {}))
    except BaseException:
        path.unlink()
        raise


def remove(desk: Desk, name: str) -> None:
    """Its file goes and where it stood; what its ticks came to stays."""
    path = path_of(desk, name)
    if not path.exists():
        raise BadInput(f"{path}: no such heartbeat")
    path.unlink()
    _delete_state(desk, name)


def load_state(desk: Desk, name: str) -> HeartbeatState:
    """Where it stands; one whose file was just put there begins now."""
    query = sa.select(heartbeats.c.state).where(heartbeats.c.name == name)
    with desk.database.connect() as connection:
        stored = connection.scalar(query)
    if stored is None:
        with desk.database.begin() as connection:
            insert_once(
                connection, heartbeats, {"name": name, "state": _dump_state(HeartbeatState(CadenceState(time.time())))}
            )
            stored = connection.execute(query).scalar_one()
    return _parse_state(stored)


def update_state(desk: Desk, name: str, update: Callable[[HeartbeatState], HeartbeatState]) -> HeartbeatState:
    """Change where it stands, with nobody else doing so meanwhile."""
    row = heartbeats.c.name == name
    with desk.database.begin() as connection:
        connection.execute(sa.update(heartbeats).where(row).values(name=name))  # takes the lock before it reads
        text = connection.scalar(sa.select(heartbeats.c.state).where(row))
        if text is None:
            raise BadInput(f"{name}: no such heartbeat")
        changed = update(_parse_state(text))
        connection.execute(sa.update(heartbeats).where(row).values(state=_dump_state(changed)))
    return changed


def set_paused(desk: Desk, name: str, now: float, pause: bool) -> None:
    """Pause or resume. One that is resumed begins anew: what was missed while it was paused was not wanted."""
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
    """A tick to hand in, in the line of the thread that it asks in."""
    thread = thread_directory(desk.home, config.thread).root.name if config.thread else load_state(desk, name).thread
    return Job("tick", key, {"heartbeat": name, "thread": thread, "reason": reason}, thread)


def record_tick(desk: Desk, record: TickRecord, update: Callable[[HeartbeatState], HeartbeatState]) -> None:
    """Write down what a tick came to and where its heartbeat stands then: both or neither, once by the tick's key."""
    row = heartbeats.c.name == record.heartbeat
    with desk.database.begin() as connection:
        if not insert_once(connection, ticks, asdict(record)):
            return
        text = connection.scalar(sa.select(heartbeats.c.state).where(row))
        if text is not None:
            connection.execute(sa.update(heartbeats).where(row).values(state=_dump_state(update(_parse_state(text)))))


def tick_log(desk: Desk, name: str, limit: int = 50) -> list[TickRecord]:
    """Its latest ticks, oldest first."""
    query = sa.select(ticks).where(ticks.c.heartbeat == name).order_by(ticks.c.at.desc()).limit(limit)
    with desk.database.connect() as connection:
        return [TickRecord(**row) for row in reversed(connection.execute(query).mappings().all())]


def spent_since(desk: Desk, name: str, moment: float) -> tuple[int, float]:
    """Tokens and dollars."""
    total = sa.select(
        sa.func.coalesce(sa.func.sum(ticks.c.tokens), 0), sa.func.coalesce(sa.func.sum(ticks.c.cost_usd), 0)
    )
    with desk.database.connect() as connection:
        tokens, usd = connection.execute(total.where(ticks.c.heartbeat == name, ticks.c.at >= moment)).one()
    return int(tokens), float(usd)


def last_spent(desk: Desk, name: str) -> tuple[int, float]:
    """Tokens and dollars of the latest tick that took any."""
    query = sa.select(ticks.c.tokens, ticks.c.cost_usd).where(
        ticks.c.heartbeat == name, sa.or_(ticks.c.tokens > 0, ticks.c.cost_usd > 0)
    )
    with desk.database.connect() as connection:
        stored = connection.execute(query.order_by(ticks.c.at.desc()).limit(1)).one_or_none()
    return (int(stored[0]), float(stored[1])) if stored else (0, 0.0)


def _delete_state(desk: Desk, name: str) -> None:
    with desk.database.begin() as connection:
        connection.execute(sa.delete(heartbeats).where(heartbeats.c.name == name))


def _dump_state(state: HeartbeatState) -> str:
    return json.dumps(asdict(state))


def _parse_state(text: str) -> HeartbeatState:
    document = json.loads(text)
    return HeartbeatState(**{**document, "state": CadenceState(**document["state"])})
