"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date, timedelta


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    for holiday in holidays:
        date.fromisoformat(holiday)
    return date.fromisoformat(day).weekday() < 5 and day not in holidays


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    step = timedelta(days=1 if count > 0 else -1)
    here = date.fromisoformat(day)
    while count != 0:
        here += step
        if is_workday(here.isoformat(), holidays):
            count -= step.days
    return here.isoformat()


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    if last < first:
        return -workdays_between(last, first, holidays)
    here, end, total = date.fromisoformat(first), date.fromisoformat(last), 0
    while here <= end:
        total += is_workday(here.isoformat(), holidays)
        here += timedelta(days=1)
    return total
