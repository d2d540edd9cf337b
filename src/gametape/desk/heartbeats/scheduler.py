"""The scheduler of a home's heartbeats: it checks event sources and submits the ticks that are due. Costs no tokens.

A tick is taken in two steps, each of which may be repeated: first its key is stored as pending, then its job is
submitted under that key. After a kill in between, the next process submits it.

Every source is read in a task of its own, so that a slow one holds up nothing but itself. Intervals go by a clock that
nobody can set; when the wall clock is set, the stored times move with it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from gametape.core.errors import GametapeError
from gametape.desk.heartbeats import registry
from gametape.desk.heartbeats.cadence import bring_back, mark_taken, next_tick, shift
from gametape.desk.heartbeats.config import HeartbeatConfig
from gametape.desk.heartbeats.event_sources import ANSWERS, event_sources
from gametape.desk.heartbeats.registry import HeartbeatState, TickRecord
from gametape.desk.jobs import Desk
from gametape.desk.workflow_engine import JobClient

_SECONDS_BETWEEN_ROUNDS = 0.5
_SECONDS_FOR_SOURCES = 0.5
"""How long a round waits for its sources; slower ones are seen by a later round."""
_LARGEST_DRIFT = 2.0
"""In seconds between two rounds: more than that, and the wall clock was set."""
_DEEPEST = 8
"""How many heartbeats may wake each other in a row."""
_CHANGED = "changed: "


@dataclass
class _CachedConfig:
    """A heartbeat's configuration and next tick, cached so that they are not computed in every round."""

    changed: int
    config: HeartbeatConfig | None
    foreseen: float | None = 0.0
    looked: float = float("-inf")


class HeartbeatScheduler:
    """Schedules the heartbeats of one desk while this process is the runner."""

    def __init__(self, desk: Desk, client: JobClient, log: Callable[[str], None]) -> None:
        self._desk, self._client, self._log = desk, client, log
        self._cache: dict[str, _CachedConfig] = {}
        self._reported: dict[str, str] = {}
        self._reads: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._offset: float | None = None

    async def run(self) -> None:
        try:
            while True:
                await self.round(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME))
                await asyncio.sleep(_SECONDS_BETWEEN_ROUNDS)
        finally:
            for read in self._reads.values():
                read.cancel()

    async def round(self, now: float, steady: float) -> None:
        """Check each heartbeat once. `now` is the wall clock and `steady` one that nobody sets, which counts a suspend.
        An error is logged and does not stop the others. A file with an error is not read again until it changes;
        everything else is tried again."""
        before, self._offset = self._offset, now - steady
        jump = 0.0 if before is None else self._offset - before
        for act in (self._prepare, self._tick):
            for name in registry.heartbeat_names(self._desk):
                try:
                    if (config := self._load_config(name)) is not None:
                        await act(name, config, now, steady, jump if abs(jump) > _LARGEST_DRIFT else 0.0)
                except FileNotFoundError:
                    continue  # it was removed meanwhile
                except GametapeError as error:
                    self._log_once(name, name, error)
            if self._reads and act == self._prepare:
                await asyncio.wait(self._reads.values(), timeout=_SECONDS_FOR_SOURCES)

    def _load_config(self, name: str) -> HeartbeatConfig | None:
        changed = registry.path_of(self._desk, name).stat().st_mtime_ns
        if name not in self._cache or self._cache[name].changed != changed:
            self._cache[name] = _CachedConfig(changed, None)
            self._cache[name].config = registry.read_config(self._desk, name)
        return self._cache[name].config

    async def _prepare(self, name: str, config: HeartbeatConfig, now: float, steady: float, jump: float) -> None:
        """Bring the stored times in line with the clock, and begin to read the sources whose time has come."""
        state = await asyncio.to_thread(registry.load_state, self._desk, name)
        cached, rule = self._cache[name], config.cadence_rule

        def move(old: HeartbeatState) -> HeartbeatState:
            return replace(old, state=bring_back(rule, shift(rule, old.state, jump), now))

        if move(state) != state:
            cached.foreseen = 0.0
            await asyncio.to_thread(registry.update_state, self._desk, name, move)
        if state.paused or state.pending or config.event is None or steady < cached.looked + config.event.every:
            return
        cached.looked = steady
        for source, read in event_sources(self._desk, config).items():
            if (name, source) not in self._reads:
                task = asyncio.create_task(self._read_source(name, config, source, read))
                self._reads[name, source] = task
                task.add_done_callback(partial(self._forget_read, (name, source)))

    def _forget_read(self, key: tuple[str, str], _read: "asyncio.Task[None]") -> None:
        self._reads.pop(key, None)

    async def _read_source(
        self, name: str, config: HeartbeatConfig, source: str, read: Callable[[], Awaitable[str]]
    ) -> None:
        """Compare a source with its last fingerprint; the first check only stores it. A source that fails is no event:
        the error is logged once, and the cadence goes on. What a configuration that is gone asked for is dropped."""

        def update(old: HeartbeatState) -> HeartbeatState:
            event, seen = old.event, {**old.seen, source: fingerprint}
            if old.seen.get(source, fingerprint) != fingerprint:
                names = {source, *event.removeprefix(_CHANGED).split(", ")} if event else {source}
                event = f"{_CHANGED}{', '.join(sorted(names))}"
            return replace(old, seen=seen, event=event)

        try:
            fingerprint = await read()
            self._reported.pop(f"{name} {source}", None)
            if (cached := self._cache.get(name)) is not None and cached.config is config:
                await asyncio.to_thread(registry.update_state, self._desk, name, update)
        except GametapeError as error:
            self._log_once(name, f"{name} {source}", error)

    async def _tick(self, name: str, config: HeartbeatConfig, now: float, _steady: float, _jump: float) -> None:
        """Take the tick of a heartbeat if it is due."""
        state = await asyncio.to_thread(registry.load_state, self._desk, name)
        if state.paused:
            return
        if state.pending:
            await asyncio.to_thread(self._check_pending, name, config, state.pending, now)
            return
        cached = self._cache[name]
        if not state.event and cached.foreseen is not None and now < cached.foreseen:
            return
        depth = await asyncio.to_thread(self._depth, config, state.event)
        if depth > _DEEPEST:
            self._log(f"heartbeat {name}: not woken: {_DEEPEST} heartbeats woke each other in a row before it")
            await asyncio.to_thread(registry.update_state, self._desk, name, lambda old: replace(old, event=""))
            return
        tick = next_tick(config.cadence_rule, config.hours, state.state, now, bool(state.event))
        cached.foreseen = 0.0 if tick.due or state.event else tick.at
        if tick.due and tick.at is not None:
            key = registry.tick_key(name, tick.at)
            reason = state.event or "its time has come"

            def take(old: HeartbeatState) -> HeartbeatState:
                taken = mark_taken(config.cadence_rule, old.state, tick)
                return replace(old, state=taken, pending=key, event="", depth=depth)

            await asyncio.to_thread(registry.update_state, self._desk, name, take)
            await asyncio.to_thread(self._submit, name, config, key, reason)

    def _depth(self, config: HeartbeatConfig, event: str) -> int:
        """How many heartbeats woke each other up to this event, which is the answer of one of them or not."""
        if config.event is None or ANSWERS not in event.removeprefix(_CHANGED).split(", "):
            return 0
        return registry.load_state(self._desk, config.event.heartbeat).depth + 1

    def _log_once(self, name: str, what: str, error: GametapeError) -> None:
        """Log an error once, and again only if it worked in between."""
        if self._reported.get(what) != str(error):
            self._reported[what] = str(error)
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
