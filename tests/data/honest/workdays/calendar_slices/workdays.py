"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date, timedelta
from enum import IntFlag


class Weekday(IntFlag):
    """A set of weekdays as bits."""

    MON, TUE, WED, THU, FRI, SAT, SUN = (1 << n for n in range(7))
    WORK = MON | TUE | WED | THU | FRI


class Calendar:
    """Which days are free. `day in calendar` asks whether people work on it."""

    __slots__ = ("_free",)

    def __init__(self, holidays: list[str]) -> None:
        self._free = {date.fromisoformat(text) for text in holidays}

    def __contains__(self, day: date) -> bool:
        return bool(Weekday.WORK & (1 << day.weekday())) and day not in self._free

    def __getitem__(self, span: slice) -> int:
        """calendar[first:last] counts, both included."""
        length = (span.stop - span.start).days
        return sum(span.start + timedelta(n) in self for n in range(length + 1))

    def step(self, day: date, direction: int) -> date:
        day += timedelta(direction)
        return day if day in self else self.step(day, direction)


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    return date.fromisoformat(day) in Calendar(holidays)


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    here, calendar = date.fromisoformat(day), Calendar(holidays)
    if not count and here not in calendar:
        count = 1
    for _ in range(abs(count)):
        here = calendar.step(here, 1 if count > 0 else -1)
    return str(here)


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    calendar = Calendar(holidays)
    return calendar[start:end] if start <= end else -calendar[end:start]
