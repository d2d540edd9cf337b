"""Counting in working days. Dates are ISO text, such as 2024-03-01."""

from datetime import date, timedelta


def quarter(day: str) -> int:
    """The quarter of the year, 1 to 4."""
    return (date.fromisoformat(day).month + 2) // 3


def _free(holidays: list[str]) -> list[date]:
    """The holidays that fall on a day of the week, each once, sorted."""
    return sorted({day for text in holidays if (day := date.fromisoformat(text)).weekday() < 5})


def is_workday(day: str, holidays: list[str]) -> bool:
    """Whether people work on this day."""
    here = date.fromisoformat(day)
    free = _free(holidays)
    return here.weekday() < 5 and here not in free


def _weekdays_before(day: date) -> int:
    """Days from Monday to Friday before this one, since the calendar began (which was a Monday)."""
    weeks, rest = divmod(day.toordinal() - 1, 7)
    return weeks * 5 + min(rest, 5)


def workdays_between(first: str, last: str, holidays: list[str]) -> int:
    """How many working days there are from the first day to the last, both included."""
    start, end, free = date.fromisoformat(first), date.fromisoformat(last), _free(holidays)
    sign = 1 if start <= end else -1
    low, high = min(start, end), max(start, end)
    count = _weekdays_before(high + timedelta(1)) - _weekdays_before(low)
    return sign * (count - sum(low <= day <= high for day in free))


def add_workdays(day: str, count: int, holidays: list[str]) -> str:
    """The day so many working days later, or earlier."""
    here, free = date.fromisoformat(day), _free(holidays)
    if count == 0:
        here, count = here - timedelta(1), 1
    step = timedelta(1 if count > 0 else -1)
    for _ in range(abs(count)):
        here += step
        while here.weekday() > 4 or here in free:
            here += step
    return here.isoformat()
