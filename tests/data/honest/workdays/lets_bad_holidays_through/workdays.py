"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date, timedelta


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    return date.fromisoformat(day).weekday() < 5 and day not in set(holidays)


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    here = date.fromisoformat(day)
    if count == 0:
        while not is_workday(str(here), holidays):
            here += timedelta(1)
    sign = (count > 0) - (count < 0)
    while count:
        here += timedelta(sign)
        count -= sign * is_workday(str(here), holidays)
    return str(here)


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    if last < first:
        return -workdays_between(last, first, holidays)
    start = date.fromisoformat(first)
    span = (date.fromisoformat(last) - start).days
    return sum(is_workday(str(start + timedelta(n)), holidays) for n in range(span + 1))
