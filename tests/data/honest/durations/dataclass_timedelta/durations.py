"""Durations as people write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
KEYWORD = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


@dataclass(frozen=True, slots=True)
class Written:
    """One part, as it was written."""

    count: int
    unit: str

    def __post_init__(self) -> None:
        if self.key not in KEYWORD:
            raise ValueError(f"unknown unit: {self.unit}")

    @property
    def key(self) -> str:
        return self.unit.lower()

    def as_timedelta(self) -> timedelta:
        return timedelta(**{KEYWORD[self.key]: self.count})


def format_duration(seconds: int) -> str:
    """Seconds as parts from large to small, without those that are zero."""
    if seconds == 0:
        return "0s"
    sign, rest = ("-", -seconds) if seconds < 0 else ("", seconds)
    parts = []
    for unit, size in SECONDS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return sign + "".join(parts)


def parse_duration(text: str) -> int:
    """The seconds that a text such as `1h 30m` stands for. Raises ValueError for anything else.

    >>> parse_duration("1h30m")
    5400
    >>> parse_duration(" 2d 4H ")
    187200
    >>> parse_duration("90")
    90
    """
    body = text.strip()
    sign = 1
    if body.startswith("-"):
        sign, body = -1, body[1:].strip()
    if not body:
        raise ValueError("this is empty")
    if re.fullmatch("[0-9]+", body):
        return sign * int(body)
    if not re.fullmatch(r"[0-9]+[A-Za-z]+(\s*[0-9]+[A-Za-z]+)*", body):
        raise ValueError(f"malformed: {text}")
    total = timedelta()
    keys: list[str] = []
    for count, unit in re.findall(r"([0-9]+)([A-Za-z]+)", body):
        part = Written(int(count), unit)
        if part.key in keys:
            raise ValueError(f"repeated: {part.key}")
        keys.append(part.key)
        if keys != sorted(keys, key="dhms".index):
            raise ValueError("the order is from large to small")
        total += part.as_timedelta()
    return sign * (total.days * 86_400 + total.seconds)
