"""Wall-clock times: cron expressions and hours of the day, in time zones whose days may have 23 or 25 hours.

An hour that does not exist: what was due in it happens as long after the clock change as it was due after the beginning
of the missing hour. An hour that comes twice: an expression that names the hour ticks the first time only, one for
every hour ticks in both.

croniter computes naive times only; daylight saving is handled here. cronsim was compared: both are maintained (croniter
6.2 by pallets-eco, July 2026; cronsim 2.8, November 2026) and the cadence tests need neither's time zones. croniter
stays because DBOS installs it anyway, and because cronsim refuses ranges such as `22-2` that users' files may hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from croniter import croniter

_MAX_SHIFT = timedelta(hours=3)
"""No clock change is larger."""
_DAY = 86_400.0
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True)
class CronCadence:
    """A cron expression of five fields, in a time zone."""

    expression: str
    zone: ZoneInfo

    def after(self, moment: float) -> float:
        """The first instant later than `moment`."""
        local = _naive(moment, self.zone)
        iterator = croniter(self.expression, local - self._slack(moment) - _MOMENT)
        best: float | None = None
        while True:
            naive = iterator.get_next(datetime)
            later = [instant for instant in self._instants(naive) if instant > moment]
            best = min([*later, *([] if best is None else [best])], default=None)
            if best is not None and naive >= _naive(best, self.zone) + self._slack(best):
                return best

    def latest(self, moment: float, after: float) -> float | None:
        """The last instant up to `moment` that is later than `after`."""
        local = _naive(moment, self.zone)
        iterator = croniter(self.expression, local + self._slack(moment) + _MOMENT)
        best, end = None, _naive(after, self.zone) - _MAX_SHIFT
        while (naive := iterator.get_prev(datetime)) >= end:
            earlier = [instant for instant in self._instants(naive) if after < instant <= moment]
            best = max([*earlier, *([] if best is None else [best])], default=None)
            if best is not None and naive <= _naive(best, self.zone) - self._slack(best):
                break
        return best

    def _instants(self, naive: datetime) -> Sequence[float]:
        first = naive.replace(tzinfo=self.zone, fold=0).timestamp()
        second = naive.replace(tzinfo=self.zone, fold=1).timestamp()
        every_hour = self.expression.split()[1].startswith("*")
        return (first, second) if second > first and every_hour else (first,)

    def _slack(self, moment: float) -> timedelta:
        """How far around a moment the order of wall-clock times may differ from the order of instants."""
        shift = _MAX_SHIFT.total_seconds()
        before, after = _offset(moment - shift, self.zone), _offset(moment + shift, self.zone)
        return _MAX_SHIFT if before != after else timedelta(0)


@dataclass(frozen=True)
class DailyHours:
    """Hours of the day on some days of the week. Hours that run past midnight belong to the day they begin on."""

    start: time
    end: time
    """Not included. The same as `start` means the whole day."""
    days: frozenset[int]
    """Monday is 0."""
    zone: ZoneInfo

    def contains(self, moment: float) -> bool:
        local = _naive(moment, self.zone)
        today, yesterday = local.weekday() in self.days, (local.weekday() - 1) % 7 in self.days
        if self.start < self.end:
            return today and self.start <= local.time() < self.end
        return (today and local.time() >= self.start) or (yesterday and local.time() < self.end)

    def next_opening(self, moment: float) -> float:
        """The first instant from `moment` on that is included."""
        if self.contains(moment):
            return moment
        day = _naive(moment, self.zone).date() - timedelta(days=1)
        while True:
            starts = [*self._possible_starts(day), *self._possible_starts(day + timedelta(days=1))]
            if openings := [instant for instant in starts if instant >= moment and self.contains(instant)]:
                return min(openings)
            day += timedelta(days=1)

    def _possible_starts(self, day: date) -> Sequence[float]:
        """The instants around a day at which the hours may begin: at their start time, or at a clock change."""
        naive = datetime.combine(day, self.start)
        shown = [naive.replace(tzinfo=self.zone, fold=fold).timestamp() for fold in (0, 1)]
        noon = datetime.combine(day, time(12)).replace(tzinfo=self.zone).timestamp()
        return [*shown, *_offset_change(noon - _DAY, noon, self.zone)]


def _offset_change(before: float, after: float, zone: ZoneInfo) -> Sequence[float]:
    """The instant of the clock change between two moments, if there was one."""
    if _offset(before, zone) == (new := _offset(after, zone)):
        return ()
    while after - before > 1e-3:
        middle = (before + after) / 2
        before, after = (before, middle) if _offset(middle, zone) == new else (middle, after)
    return (float(round(after)),)


def _naive(moment: float, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(moment, zone).replace(tzinfo=None)


def _offset(moment: float, zone: ZoneInfo) -> timedelta | None:
    return datetime.fromtimestamp(moment, zone).utcoffset()
