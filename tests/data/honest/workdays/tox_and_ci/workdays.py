"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

import bisect
import functools
from datetime import date


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def _ordinal(text: str) -> int:
    return date.fromisoformat(text).toordinal()


@functools.lru_cache(maxsize=32)
def _free(holidays: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(sorted({n for n in map(_ordinal, holidays) if n % 7 not in (6, 0)}))


def _works_up_to(ordinal: int, free: tuple[int, ...]) -> int:
    """Working days from the beginning of the calendar to this day, included."""
    weeks, rest = divmod(ordinal, 7)
    return weeks * 5 + min(rest, 5) - bisect.bisect_right(free, ordinal)


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    here, free = _ordinal(day), _free(tuple(holidays))
    return _works_up_to(here, free) > _works_up_to(here - 1, free)


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    here, free = _ordinal(day), _free(tuple(holidays))
    if count > 0:
        target = _works_up_to(here, free) + count
    elif count < 0:
        target = _works_up_to(here - 1, free) + count + 1
    else:
        target = _works_up_to(here - 1, free) + 1
    found = bisect.bisect_left(range(1, date.max.toordinal()), target, key=lambda n: _works_up_to(n, free)) + 1
    return date.fromordinal(found).isoformat()


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    start, end, free = _ordinal(first), _ordinal(last), _free(tuple(holidays))
    if start > end:
        return -workdays_between(last, first, holidays)
    return _works_up_to(end, free) - _works_up_to(start - 1, free)
