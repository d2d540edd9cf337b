"""Durations as people write them."""

import re
from enum import IntEnum
from functools import reduce


class Unit(IntEnum):
    """Seconds of a unit. `__class_getitem__` of an Enum is its own, hence `of`."""

    d = 86_400
    h = 3_600
    m = 60
    s = 1

    @classmethod
    def of(cls, written: str) -> "Unit":
        try:
            return cls[written.lower()]
        except KeyError:
            raise ValueError(f"unknown unit {written!r}") from None


SECONDS = {unit.name: int(unit) for unit in Unit}


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
    """The seconds that a text such as `1h 30m` stands for. Raises ValueError for anything else."""
    body = text.strip()
    minus = body.startswith("-")
    body = body.lstrip("-").lstrip() if body.count("-") <= 1 else body
    if not body:
        raise ValueError("empty text")
    if re.fullmatch(r"\d+", body, re.ASCII):
        return -int(body) if minus else int(body)
    if not re.fullmatch(r"([0-9]+[A-Za-z]+\s*)+", body):
        raise ValueError(f"malformed text {text!r}")
    pairs = re.findall(r"([0-9]+)([A-Za-z]+)", body)
    total, _ = reduce(_add, pairs, (0, ()))
    return int(-total if minus else total)


def _add(state: tuple[int, tuple[Unit, ...]], pair: tuple[str, str]) -> tuple[int, tuple[Unit, ...]]:
    total, seen = state
    unit = Unit.of(pair[1])
    if unit in seen:
        raise ValueError(f"repeated unit {unit.name}")
    if seen and unit > seen[-1]:
        raise ValueError(f"{unit.name} is out of order")
    return total + int(pair[0]) * unit, (*seen, unit)
