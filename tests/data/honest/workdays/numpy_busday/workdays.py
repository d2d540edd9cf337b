"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date

import numpy as np


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    return bool(np.is_busday(day, holidays=holidays))


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    roll = "forward" if count <= 0 else "backward"
    return str(np.busday_offset(day, count, roll=roll, holidays=holidays))


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    return int(np.busday_count(first, np.datetime64(last) + 1, holidays=holidays))
