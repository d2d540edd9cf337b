"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

import itertools
from collections.abc import Callable, Iterator
from datetime import date, timedelta

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEKEND = frozenset({"Saturday", "Sunday"})


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def _calendar(holidays: list[str]) -> Callable[[date], bool]:
    free = frozenset(map(date.fromisoformat, holidays))
    return lambda day: WEEKDAYS[day.weekday()] not in WEEKEND and day not in free


def _days(start: date, step: int) -> Iterator[date]:
    return (start + timedelta(days=step * number) for number in itertools.count())


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    return _calendar(holidays)(date.fromisoformat(day))


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier.

    >>> add_workdays("2024-03-01", 1, [])
    '2024-03-04'
    """
    works, start = _calendar(holidays), date.fromisoformat(day)
    step = -1 if count < 0 else 1
    days = filter(works, _days(start, step))
    if count == 0:
        return next(days).isoformat()
    later = itertools.dropwhile(lambda each: each == start, days)
    return next(itertools.islice(later, abs(count) - 1, None)).isoformat()


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    works, (low, high) = _calendar(holidays), sorted((date.fromisoformat(first), date.fromisoformat(last)))
    total = sum(1 for day in itertools.takewhile(lambda each: each <= high, _days(low, 1)) if works(day))
    return total if first == low.isoformat() else -total
