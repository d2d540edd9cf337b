"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date, timedelta


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    return date.fromisoformat(day).weekday() < 5 and date.fromisoformat(day) not in map(date.fromisoformat, holidays)


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    d = date.fromisoformat(day)
    while count == 0 and not is_workday(d.isoformat(), holidays):
        d += timedelta(1)
    while count:
        d += timedelta(1 if count > 0 else -1)
        if is_workday(d.isoformat(), holidays):
            count -= 1 if count > 0 else -1
    return d.isoformat()


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    if last < first:
        return -workdays_between(last, first, holidays)
    a, b = date.fromisoformat(first), date.fromisoformat(last)
    days = [a + timedelta(n) for n in range((b - a).days + 1)]
    return sum(d.weekday() < 5 for d in days) - sum(a <= date.fromisoformat(h) <= b for h in holidays)
