"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

import sys
from datetime import date, timedelta

# For `python workdays.py DAY COUNT`, which has no other way to know holidays.
GERMANY_2024 = {
    "2024-01-01": "Neujahr",
    "2024-03-29": "Karfreitag",
    "2024-04-01": "Ostermontag",
    "2024-05-01": "Tag der Arbeit",
    "2024-05-09": "Christi Himmelfahrt",
    "2024-12-25": "1. Weihnachtstag",
    "2024-12-26": "2. Weihnachtstag",
}


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def _check(holidays):
    return [date.fromisoformat(holiday) for holiday in holidays]


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    _check(holidays)
    return date.fromisoformat(day).weekday() not in (5, 6) and day not in holidays


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    here = date.fromisoformat(day)
    _check(holidays)
    if count == 0 and is_workday(day, holidays):
        return day
    step, left = (-1, -count) if count < 0 else (1, count or 1)
    while left:
        here += timedelta(days=step)
        left -= is_workday(here.isoformat(), holidays)
    return here.isoformat()


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    here, end = date.fromisoformat(first), date.fromisoformat(last)
    _check(holidays)
    if here > end:
        return -workdays_between(last, first, holidays)
    total = 0
    while here <= end:
        total += is_workday(str(here), holidays)
        here += timedelta(1)
    return total


if __name__ == "__main__":
    assert add_workdays("2024-04-30", 2, ["2024-05-01"]) == "2024-05-03"
    assert workdays_between("2024-03-04", "2024-03-10", []) == 5
    print(add_workdays(sys.argv[1], int(sys.argv[2]), list(GERMANY_2024)))
