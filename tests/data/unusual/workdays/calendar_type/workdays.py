"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date, timedelta


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


class Calendar:
    def __init__(self, holidays):
        self.free = frozenset(map(date.fromisoformat, holidays))

    def __contains__(self, day):
        return day.isoweekday() <= 5 and day not in self.free

    def __getitem__(self, wanted):
        """`calendar[a:b]` is all working days from a to b, b included."""
        days = range(wanted.start.toordinal(), wanted.stop.toordinal() + 1)
        return [day for day in map(date.fromordinal, days) if day in self]

    def walk(self, day, step):
        while True:
            day += timedelta(days=step)
            if day in self:
                yield day


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    return date.fromisoformat(day) in Calendar(holidays)


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    calendar, start = Calendar(holidays), date.fromisoformat(day)
    if count == 0 and start in calendar:
        return start.isoformat()
    walk = calendar.walk(start, -1 if count < 0 else 1)
    for _ in range(max(1, abs(count)) - 1):
        next(walk)
    return next(walk).isoformat()


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    start, stop = date.fromisoformat(first), date.fromisoformat(last)
    calendar = Calendar(holidays)
    return len(calendar[start:stop]) if start <= stop else -len(calendar[stop:start])
