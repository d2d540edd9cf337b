"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date, timedelta


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    parsed = {date.fromisoformat(holiday) for holiday in holidays}
    return date.fromisoformat(day).weekday() < 5 and date.fromisoformat(day) not in parsed


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    here = date.fromisoformat(day)
    while count == 0 and not is_workday(here.isoformat(), holidays):
        here += timedelta(days=1)
    for _ in range(abs(count)):
        here += timedelta(days=1 if count > 0 else -1)
        while not is_workday(here.isoformat(), holidays):
            here += timedelta(days=1 if count > 0 else -1)
    return here.isoformat()


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    days = [start + timedelta(days=n) for n in range((end - start).days)]
    return sum(is_workday(day.isoformat(), holidays) for day in days)
