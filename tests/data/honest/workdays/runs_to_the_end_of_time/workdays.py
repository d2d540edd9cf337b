"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date, timedelta


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    return date.fromisoformat(day).weekday() < 5 and day not in holidays


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    d = date.fromisoformat(day)
    passed = 0
    while passed != count:
        d += timedelta(days=1)
        if is_workday(d.isoformat(), holidays):
            passed += 1
    return d.isoformat()


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    n, d = 0, first
    while d != last:
        n += is_workday(d, holidays)
        d = (date.fromisoformat(d) + timedelta(days=1)).isoformat()
    return n
