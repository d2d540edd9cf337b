"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date, timedelta

ONE_DAY = timedelta(days=1)
SATURDAY = 5


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    return _works(date.fromisoformat(day), _dates(holidays))


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    here, free = date.fromisoformat(day), _dates(holidays)
    if count == 0:
        while not _works(here, free):
            here += ONE_DAY
    step = ONE_DAY if count > 0 else -ONE_DAY
    left = abs(count)
    while left:
        here += step
        left -= _works(here, free)
    return here.isoformat()


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    start, end, free = date.fromisoformat(first), date.fromisoformat(last), _dates(holidays)
    if end < start:
        return -workdays_between(last, first, holidays)
    days = (start + ONE_DAY * offset for offset in range((end - start).days + 1))
    return sum(_works(day, free) for day in days)


def _dates(texts: list[str]) -> set[date]:
    return {date.fromisoformat(text) for text in texts}


def _works(day: date, free: set[date]) -> bool:
    return day.weekday() < SATURDAY and day not in free
