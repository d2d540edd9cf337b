"""Looking after the heartbeats of a home: who has seen something, whose tick is due. Costs no token.

A tick is taken in two moves, each of which may be repeated: first the database says that it was taken and under which
key, then it is handed in under that key. Killed in between, the next process hands it in.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from gametape.core.errors import GametapeError
from gametape.desk.heartbeats import registry
from gametape.desk.heartbeats.cadence import mark_taken, next_tick
from gametape.desk.heartbeats.config import HeartbeatConfig
from gametape.desk.heartbeats.event_sources import read_fingerprints
from gametape.desk.heartbeats.registry import HeartbeatState, TickRecord
from gametape.desk.jobs import Desk
from gametape.desk.workflow_engine import JobClient

_SECONDS_BETWEEN_ROUNDS = 0.5


@dataclass
class _Known:
    """What this process remembers of a heartbeat's file, so as not to read and reckon again at every round."""

    changed: int
    plan: HeartbeatConfig | None
    foreseen: float | None = 0.0
    looked: float = 0.0


class HeartbeatScheduler:
    """The heartbeats of one desk, for as long as this process is the runner."""

    def __init__(self, desk: Desk, errands: JobClient, tell: Callable[[str], None]) -> None:
        self._desk, self._errands, self._tell = desk, errands, tell
        self._known: dict[str, _Known] = {}
        self._told: dict[str, str] = {}

    async def run(self, clock: Callable[[], float]) -> None:
        while True:
            await self.round(clock())
            await asyncio.sleep(_SECONDS_BETWEEN_ROUNDS)

    async def round(self, now: float) -> None:
        """Look at each heartbeat once. One that cannot be used is told of, and does not keep the others: a file is not
        read again until it changes, everything else is tried again."""
        for name in registry.heartbeat_names(self._desk):
            try:
                if (plan := self._plan(name)) is not None:
                    await self._attend(name, plan, now)
            except FileNotFoundError:
                continue  # it was removed meanwhile
            except GametapeError as error:
                self._tell_once(name, error)

    def _plan(self, name: str) -> HeartbeatConfig | None:
        changed = registry.path_of(self._desk, name).stat().st_mtime_ns
        if name not in self._known or self._known[name].changed != changed:
            self._known[name] = _Known(changed, None)
            self._known[name].plan = registry.read_config(self._desk, name)
        return self._known[name].plan

    async def _attend(self, name: str, plan: HeartbeatConfig, now: float) -> None:
        standing = await asyncio.to_thread(registry.load_state, self._desk, name)
        if standing.paused:
            return
        if standing.pending:
            await asyncio.to_thread(self._see_to, name, plan, standing.pending, now)
            return
        known = self._known[name]
        if plan.event is not None and now >= known.looked + plan.event.every:
            known.looked = now
            standing = await self._look(name, plan, standing)
        if not standing.event and known.foreseen is not None and now < known.foreseen:
            return
        tick = next_tick(plan.cadence_rule, plan.hours, standing.state, now, bool(standing.event))
        known.foreseen = 0.0 if tick.due or standing.event else tick.at
        if tick.due and tick.at is not None:
            key = registry.tick_key(name, tick.at)
            reason = standing.event or "its time has come"
            how = lambda old: replace(old, state=mark_taken(plan.cadence_rule, old.state, tick), pending=key, event="")  # noqa: E731
            await asyncio.to_thread(registry.update_state, self._desk, name, how)
            await asyncio.to_thread(self._hand_in, name, plan, key, reason)

    async def _look(self, name: str, plan: HeartbeatConfig, standing: HeartbeatState) -> HeartbeatState:
        """The first look at a source is what later ones are compared with. A source that fails has not changed: it is
        told of once, looked at again at its next time, and the cadence goes on without it."""
        try:
            seen = await read_fingerprints(self._desk, plan)
        except GametapeError as error:
            self._tell_once(name, error)
            return standing
        self._told.pop(name, None)
        if seen == standing.seen:
            return standing
        changed = sorted(source for source in seen if standing.seen.get(source, seen[source]) != seen[source])
        event = f"changed: {', '.join(changed)}" if changed else standing.event
        how = lambda old: replace(old, seen=seen, event=event)  # noqa: E731
        return await asyncio.to_thread(registry.update_state, self._desk, name, how)

    def _tell_once(self, name: str, error: GametapeError) -> None:
        """Not again at every round, but again if it was well in between."""
        if self._told.get(name) != str(error):
            self._told[name] = str(error)
            self._tell(f"heartbeat {name}: {error}")

    def _see_to(self, name: str, plan: HeartbeatConfig, key: str, now: float) -> None:
        """A tick that was taken: hand it in if that was not done, and go on if it ended without saying so."""
        match self._errands.state(key):
            case None:
                self._hand_in(name, plan, key, "taken before a restart")
            case "done" | "failed":
                ended = TickRecord(
                    key, name, now, now, "failed", f"see {self._desk.home / 'desk' / 'desk.log'}", 0, 0.0
                )
                registry.record_tick(self._desk, ended, lambda old: old)
                registry.update_state(
                    self._desk, name, lambda old: replace(old, pending="") if old.pending == key else old
                )

    def _hand_in(self, name: str, plan: HeartbeatConfig, key: str, reason: str) -> None:
        self._errands.submit(registry.tick_job(self._desk, name, plan, key, reason))
