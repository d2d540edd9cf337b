"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day: str, holidays: list[str]) -> bool
    return date.fromisoformat(day).weekday() < 5
