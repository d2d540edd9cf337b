"""Durations as people write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


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


class Part(NamedTuple):
    count: int
    written: str

    @property
    def unit(self) -> str:
        return self.written.lower()

    def accept(self, visitor: Visitor) -> None:
        visitor.visit(self)


class Visitor(Protocol):
    def visit(self, part: Part) -> None: ...


class Known:
    def visit(self, part: Part) -> None:
        if part.unit not in SECONDS:
            raise ValueError(f"unknown unit {part.written}")


class Once:
    def __init__(self) -> None:
        self.seen: set[str] = set()

    def visit(self, part: Part) -> None:
        if part.unit in self.seen:
            raise ValueError(f"repeated unit {part.unit}")
        self.seen.add(part.unit)


class Falling:
    def __init__(self) -> None:
        self.last = max(SECONDS.values()) + 1

    def visit(self, part: Part) -> None:
        if SECONDS[part.unit] > self.last:
            raise ValueError("wrong order of units")
        self.last = SECONDS[part.unit]


class Sum:
    def __init__(self) -> None:
        self.total = 0

    def visit(self, part: Part) -> None:
        self.total += part.count * SECONDS[part.unit]


def _parts(body: str) -> Iterator[Part]:
    if re.fullmatch(r"(?:[0-9]+[a-zA-Z]+\s*)+", body) is None:
        raise ValueError(f"malformed: {body}")
    for found in re.finditer(r"([0-9]+)([a-zA-Z]+)", body):
        yield Part(int(found[1]), found[2])


def parse_duration(text: str) -> int:
    """The seconds that a text such as `1h 30m` stands for. Raises ValueError for anything else."""
    body = text.strip()
    negative = body.startswith("-")
    body = body[negative:].strip()
    if not body:
        raise ValueError("empty text")
    if re.fullmatch("[0-9]+", body):
        body += "s"
    visitors: list[Visitor] = [Known(), Once(), Falling(), total := Sum()]
    for part in _parts(body):
        for visitor in visitors:
            part.accept(visitor)
    return -total.total if negative else total.total
