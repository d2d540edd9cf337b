"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

import calendar
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

MONTHS = {name: number for number, name in enumerate(calendar.month_abbr) if name}


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def _parse(text):
    return date.fromisoformat(text)


def _working(day, free):
    return day.isoweekday() <= 5 and day not in free


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    return _working(_parse(day), [_parse(each) for each in holidays])


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    here = _parse(day)
    free = {_parse(each) for each in holidays}
    skipped = 0
    if count == 0 and _working(here, free):
        return day
    left = abs(count) or 1
    direction = timedelta(days=-1) if count < 0 else timedelta(days=1)
    while left > 0:
        here = here + direction
        if _working(here, free):
            left -= 1
        else:
            skipped += 1
    return here.isoformat()


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    start, end = _parse(first), _parse(last)
    if end < start:
        return -1 * workdays_between(last, first, holidays)
    free = {_parse(each) for each in holidays}
    days = [start + timedelta(days=n) for n in range((end - start).days + 1)]
    months = {}
    for day in days:
        months.setdefault((day.year, day.month), []).append(day)
    with ThreadPoolExecutor(max_workers=4) as pool:
        return sum(pool.map(lambda month: sum(_working(day, free) for day in month), months.values()))
