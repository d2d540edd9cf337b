"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    return True


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    return day


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    return 0
