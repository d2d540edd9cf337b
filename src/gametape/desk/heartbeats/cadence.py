"""When a heartbeat ticks next: a pure function of its cadence, its state, the time, and whether an event was seen.

Every cadence is a sequence of instants. Those outside the active hours are moved to the next opening. Of all instants
that were missed, for whatever reason, only the last one is made up for.
"""

from dataclasses import dataclass, replace
from typing import Protocol

from gametape.desk.heartbeats.wall_clock import CronCadence, DailyHours

_GAP = 1.0
"""The minimum number of seconds between two ticks, however many events there are."""


class TickSequence(Protocol):
    """The instants at which a cadence ticks."""

    def after(self, moment: float) -> float: ...

    def latest(self, moment: float, after: float) -> float | None:
        """The last instant up to `moment` that is later than `after`."""
        ...


@dataclass(frozen=True)
class FixedCadence:
    every: float


@dataclass(frozen=True)
class AdaptiveCadence:
    fastest: float
    slowest: float


Cadence = FixedCadence | CronCadence | AdaptiveCadence | None
"""None: ticks on events only."""


@dataclass(frozen=True)
class CadenceState:
    """What the next tick depends on."""

    anchor: float
    """When the heartbeat was added."""
    last: float | None = None
    """The instant its last tick was scheduled for."""
    interval: float | None = None
    """The current interval of an adaptive cadence."""


@dataclass(frozen=True)
class NextTick:
    at: float | None
    """None: never, unless there is an event."""
    due: bool


def next_tick(cadence: Cadence, hours: DailyHours | None, state: CadenceState, now: float, event: bool) -> NextTick:
    """The next tick, and whether it is due. It is always later than the last one: a tick that was taken
    (`mark_taken`) is not due again, even after a restart or with a clock that was set back."""
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


def bring_back(cadence: Cadence, state: CadenceState, now: float) -> CadenceState:
    """The state to go on with where the last tick lies in the future by more than one period, because the clock was
    wrong then: as if the last tick were now. Any other state is returned as it is."""
    since = state.anchor if state.last is None else state.last
    if since <= now:
        return state
    match cadence:
        case FixedCadence(period):
            pass
        case AdaptiveCadence():
            period = _interval(cadence, state)
        case CronCadence():
            period = cadence.after(now) - now
        case None:
            period = _GAP
    return state if since - now <= period else replace(state, anchor=now, last=now)


def shift(cadence: Cadence, state: CadenceState, seconds: float) -> CadenceState:
    """The state after the clock was set by some seconds: an interval goes on as if it had not been. Times of the day
    are those of the new clock."""
    if isinstance(cadence, CronCadence):
        return state
    return replace(state, anchor=state.anchor + seconds, last=None if state.last is None else state.last + seconds)


def mark_taken(cadence: Cadence, state: CadenceState, tick: NextTick) -> CadenceState:
    """The state after a tick has begun."""
    interval = _interval(cadence, state) if isinstance(cadence, AdaptiveCadence) else None
    return replace(state, last=tick.at, interval=interval)


def adapt_interval(cadence: Cadence, state: CadenceState, eventful: bool) -> CadenceState:
    """The state after a tick has ended: an adaptive cadence halves its interval after an answer, and doubles it when
    there was nothing to say."""
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
