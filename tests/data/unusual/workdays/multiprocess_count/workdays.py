"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

import os
from datetime import date, timedelta
from multiprocessing import get_context


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


_MANY = 200_000


def _free(holidays):
    return frozenset(date.fromisoformat(day) for day in holidays)


def _count(task):
    start, stop, free = task
    return sum(1 for n in range(start, stop) if n % 7 not in (6, 0) and date.fromordinal(n) not in free)


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    number = date.fromisoformat(day).toordinal()
    return _count((number, number + 1, _free(holidays))) == 1


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    here, free = date.fromisoformat(day), _free(holidays)
    works = lambda: here.weekday() < 5 and here not in free
    if not count:
        while not works():
            here += timedelta(1)
    while count:
        here += timedelta(1 if count > 0 else -1)
        count += (-1 if count > 0 else 1) if works() else 0
    return here.isoformat()


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    if date.fromisoformat(last) < date.fromisoformat(first):
        return -workdays_between(last, first, holidays)
    start, stop = date.fromisoformat(first).toordinal(), date.fromisoformat(last).toordinal() + 1
    free = _free(holidays)
    if stop - start < _MANY:
        return _count((start, stop, free))
    edges = [*range(start, stop, _MANY), stop]
    with get_context("spawn").Pool(os.cpu_count()) as pool:
        return sum(pool.map(_count, [(a, b, free) for a, b in zip(edges, edges[1:])]))
