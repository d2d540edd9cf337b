"""The scheduler of a home's heartbeats: it checks event sources and submits the ticks that are due. Costs no tokens.

A tick is taken in two steps, each of which may be repeated: first its key is stored as pending, then its job is
submitted under that key. After a kill in between, the next process submits it.
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
class _CachedConfig:
    """A heartbeat's configuration and next tick, cached so that they are not computed in every round."""

    changed: int
    config: HeartbeatConfig | None
    foreseen: float | None = 0.0
    looked: float = 0.0


class HeartbeatScheduler:
    """Schedules the heartbeats of one desk while this process is the runner."""

    def __init__(self, desk: Desk, client: JobClient, log: Callable[[str], None]) -> None:
        self._desk, self._client, self._log = desk, client, log
        self._cache: dict[str, _CachedConfig] = {}
        self._reported: dict[str, str] = {}

    async def run(self, clock: Callable[[], float]) -> None:
        while True:
            await self.round(clock())
            await asyncio.sleep(_SECONDS_BETWEEN_ROUNDS)

    async def round(self, now: float) -> None:
        """Check each heartbeat once. An error is logged and does not stop the others. A file with an error is not read
        again until it changes; everything else is tried again."""
        for name in registry.heartbeat_names(self._desk):
            try:
                if (config := self._load_config(name)) is not None:
                    await self._check_heartbeat(name, config, now)
            except FileNotFoundError:
                continue  # it was removed meanwhile
            except GametapeError as error:
                self._log_once(name, error)

    def _load_config(self, name: str) -> HeartbeatConfig | None:
        changed = registry.path_of(self._desk, name).stat().st_mtime_ns
        if name not in self._cache or self._cache[name].changed != changed:
            self._cache[name] = _CachedConfig(changed, None)
            self._cache[name].config = registry.read_config(self._desk, name)
        return self._cache[name].config

    async def _check_heartbeat(self, name: str, config: HeartbeatConfig, now: float) -> None:
        state = await asyncio.to_thread(registry.load_state, self._desk, name)
        if state.paused:
            return
        if state.pending:
            await asyncio.to_thread(self._check_pending, name, config, state.pending, now)
            return
        cached = self._cache[name]
        if config.event is not None and now >= cached.looked + config.event.every:
            cached.looked = now
            state = await self._check_sources(name, config, state)
        if not state.event and cached.foreseen is not None and now < cached.foreseen:
            return
        tick = next_tick(config.cadence_rule, config.hours, state.state, now, bool(state.event))
        cached.foreseen = 0.0 if tick.due or state.event else tick.at
        if tick.due and tick.at is not None:
            key = registry.tick_key(name, tick.at)
            reason = state.event or "its time has come"

            def take(old: HeartbeatState) -> HeartbeatState:
                return replace(old, state=mark_taken(config.cadence_rule, old.state, tick), pending=key, event="")

            await asyncio.to_thread(registry.update_state, self._desk, name, take)
            await asyncio.to_thread(self._submit, name, config, key, reason)

    async def _check_sources(self, name: str, config: HeartbeatConfig, state: HeartbeatState) -> HeartbeatState:
        """Compare the sources with their last fingerprints; the first check only stores them. A source that fails is no
        event: the error is logged once, and the cadence goes on."""
        try:
            seen = await read_fingerprints(self._desk, config)
        except GametapeError as error:
            self._log_once(name, error)
            return state
        self._reported.pop(name, None)
        if seen == state.seen:
            return state
        changed = sorted(source for source in seen if state.seen.get(source, seen[source]) != seen[source])
        event = f"changed: {', '.join(changed)}" if changed else state.event
        update = lambda old: replace(old, seen=seen, event=event)  # noqa: E731
        return await asyncio.to_thread(registry.update_state, self._desk, name, update)

    def _log_once(self, name: str, error: GametapeError) -> None:
        """Log an error once, and again only if the heartbeat worked in between."""
        if self._reported.get(name) != str(error):
            self._reported[name] = str(error)
            self._log(f"heartbeat {name}: {error}")

    def _check_pending(self, name: str, config: HeartbeatConfig, key: str, now: float) -> None:
        """Submit a pending tick that was not submitted, and record one whose job ended without recording an outcome."""
        match self._client.state(key):
            case None:
                self._submit(name, config, key, "taken before a restart")
            case "done" | "failed":
                record = TickRecord(
                    key, name, now, now, "failed", f"see {self._desk.home / 'desk' / 'desk.log'}", 0, 0.0
                )
                registry.record_tick(self._desk, record, lambda old: old)
                registry.update_state(
                    self._desk, name, lambda old: replace(old, pending="") if old.pending == key else old
                )

    def _submit(self, name: str, config: HeartbeatConfig, key: str, reason: str) -> None:
        self._client.submit(registry.tick_job(self._desk, name, config, key, reason))
