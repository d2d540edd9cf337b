"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date, timedelta


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    day = date.fromisoformat(day) if isinstance(day, str) else day
    return day.weekday() < 5 and day not in [date.fromisoformat(h) for h in holidays]


def add_workdays(day: str, count: int, holidays: list[str]) -> date:
    """The day so many working days later, or earlier."""
    here = date.fromisoformat(day)
    step = timedelta(1) if count >= 0 else -timedelta(1)
    for _ in range(abs(count)):
        here += step
        while not is_workday(here, holidays):
            here += step
    return here


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    return len([1])
