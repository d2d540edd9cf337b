"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date, timedelta


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    return date.fromisoformat(day).weekday() not in (0, 6) and day not in holidays


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    d = date.fromisoformat(day)
    for _ in range(abs(count)):
        d += timedelta(1 if count > 0 else -1)
        while not is_workday(str(d), holidays):
            d += timedelta(1 if count > 0 else -1)
    return str(d)


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    a, b = date.fromisoformat(first), date.fromisoformat(last)
    return sum(is_workday(str(a + timedelta(n)), holidays) for n in range((b - a).days + 1))
