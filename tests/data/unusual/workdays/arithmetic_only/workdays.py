"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from bisect import bisect_left, bisect_right
from datetime import date


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def _number(day):
    return date.fromisoformat(day).toordinal()


def _weekdays_through(number):
    """Mondays to Fridays from day 1, which is a Monday, to this one."""
    weeks, rest = divmod(number, 7)
    return weeks * 5 + min(rest, 5)


class _Year:
    __slots__ = ("free",)

    def __init__(self, holidays):
        self.free = sorted({n for n in map(_number, holidays) if (n - 1) % 7 < 5})

    def through(self, number):
        return _weekdays_through(number) - bisect_right(self.free, number)

    def works(self, number):
        return self.through(number) != self.through(number - 1)


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    return _Year(holidays).works(_number(day))


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    year, number = _Year(holidays), _number(day)
    if count == 0:
        count, number = 1, number - 1
    wanted = year.through(number) + count if count > 0 else year.through(number - 1) + count + 1
    low, high = min(number, number + 3 * count) - 40, max(number, number + 3 * count) + 40
    low -= 3 * len(year.free)
    high += 3 * len(year.free)
    days = range(low, high)
    return date.fromordinal(days[bisect_left(days, wanted, key=year.through)]).isoformat()


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    start, end, year = _number(first), _number(last), _Year(holidays)
    if end < start:
        return year.through(end - 1) - year.through(start)
    return year.through(end) - year.through(start - 1)
