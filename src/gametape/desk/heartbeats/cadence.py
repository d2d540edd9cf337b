"""When a heartbeat ticks next: a pure function of its cadence, what it did last, the time, and what was seen.

Every cadence is a row of instants. Those that lie outside the active hours are moved to the next opening. Of all that
were missed, whatever the reason, only the last one is made up for.
"""

from dataclasses import dataclass, replace
from typing import Protocol

from gametape.desk.heartbeats.wall_clock import CronCadence, DailyHours

_GAP = 1.0
"""Seconds between two ticks at least, however much is seen."""


class TickSequence(Protocol):
    """Instants at which a cadence ticks, given where it stands."""

    def after(self, moment: float) -> float: ...

    def latest(self, moment: float, after: float) -> float | None:
        """The last one up to `moment` that is later than `after`."""
        ...


@dataclass(frozen=True)
class FixedCadence:
    every: float


@dataclass(frozen=True)
class AdaptiveCadence:
    fastest: float
    slowest: float


Cadence = FixedCadence | CronCadence | AdaptiveCadence | None
"""None: only when something is seen."""


@dataclass(frozen=True)
class CadenceState:
    """Where a heartbeat stands."""

    anchor: float
    """When it was begun."""
    last: float | None = None
    """The instant its last tick was scheduled for."""
    interval: float | None = None
    """Of an adaptive cadence."""


@dataclass(frozen=True)
class NextTick:
    at: float | None
    """None: never, unless something is seen."""
    due: bool


def next_tick(cadence: Cadence, hours: DailyHours | None, state: CadenceState, now: float, event: bool) -> NextTick:
    """The tick that comes next, and whether it is due. Later than the last one in any case: a tick that was taken
    (`taken`) is not due again, so that asking twice, after a restart or with a clock set back, ticks once."""
    since = state.anchor if state.last is None else state.last
    sequence = _tick_sequence(cadence, state, since)
    if event:
        at = max(now, since + _GAP)
    elif sequence is None:
        return NextTick(None, False)
    else:
        missed = sequence.latest(now, since)
        at = sequence.after(max(now, since)) if missed is None else missed
    if hours is not None:
        at = hours.next_opening(at) if at > now or hours.contains(now) else hours.next_opening(now)
    return NextTick(at, at <= now)


def mark_taken(cadence: Cadence, state: CadenceState, tick: NextTick) -> CadenceState:
    """The state when a tick was begun."""
    interval = _interval(cadence, state) if isinstance(cadence, AdaptiveCadence) else None
    return replace(state, last=tick.at, interval=interval)


def adapt_interval(cadence: Cadence, state: CadenceState, eventful: bool) -> CadenceState:
    """The state when a tick has ended: twice as fast while things happen, half as fast when idle."""
    if not isinstance(cadence, AdaptiveCadence):
        return state
    changed = _interval(cadence, state) * (0.5 if eventful else 2.0)
    return replace(state, interval=min(max(changed, cadence.fastest), cadence.slowest))


@dataclass(frozen=True)
class _Grid:
    start: float
    every: float

    def after(self, moment: float) -> float:
        number = max(1, self._about(moment) - 1)
        while self._instant(number) <= moment:
            number += 1
        return self._instant(number)

    def latest(self, moment: float, after: float) -> float | None:
        number = self._about(moment) + 1
        while self._instant(number) > moment:
            number -= 1
        return self._instant(number) if number > 0 and self._instant(number) > after else None

    def _about(self, moment: float) -> int:
        return int((moment - self.start) // self.every)  # rounding may make it one too many or too few

    def _instant(self, number: int) -> float:
        return self.start + self.every * number


def _tick_sequence(cadence: Cadence, state: CadenceState, since: float) -> TickSequence | None:
    match cadence:
        case None:
            return None
        case FixedCadence(every):
            return _Grid(state.anchor, every)
        case AdaptiveCadence():
            return _Grid(since, _interval(cadence, state))
        case CronCadence():
            return cadence


def _interval(cadence: AdaptiveCadence, state: CadenceState) -> float:
    return min(max(state.interval or cadence.fastest, cadence.fastest), cadence.slowest)
