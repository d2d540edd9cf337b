"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date, timedelta


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    free = [date.fromisoformat(h) for h in holidays]
    d = date.fromisoformat(day)
    return d.weekday() < 5 and d not in free


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    d = date.fromisoformat(day)
    step = 1 if count >= 0 else -1
    left = abs(count)
    while left > 0 or not is_workday(str(d), holidays):
        if is_workday(str(d), holidays):
            left -= 1
        d += timedelta(step)
    return str(d)


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    if last < first:
        return -workdays_between(last, first, holidays)
    d, n = date.fromisoformat(first), 0
    while d < date.fromisoformat(last):
        n += is_workday(str(d), holidays)
        d += timedelta(1)
    return n
