"""Durations as people write them."""

import re
from typing import NamedTuple

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_TOKEN = re.compile(r"\s*(?P<count>[0-9]+)(?P<unit>[a-z]+)\s*", re.IGNORECASE | re.ASCII)


class Part(NamedTuple):
    count: int
    written: str

    @property
    def unit(self) -> str:
        return self.written.lower()


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
    rest = text.strip()
    factor = 1
    if rest.startswith("-"):
        factor, rest = -1, rest[1:].strip()
    if not rest:
        raise ValueError("the duration is empty")
    if re.fullmatch(r"[0-9]+", rest):
        return factor * int(rest)
    parts, position = [], 0
    while position < len(rest):
        if not (found := _TOKEN.match(rest, position)):
            raise ValueError(f"malformed at {position}: {text!r}")
        parts.append(Part(int(found["count"]), found["unit"]))
        position = found.end()
    return factor * sum(_checked(parts))


def _checked(parts: list[Part]):
    before: list[str] = []
    for part in parts:
        if part.unit not in SECONDS:
            raise ValueError(f"unknown unit {part.written}")
        if part.unit in before:
            raise ValueError(f"repeated unit {part.unit}")
        if before and SECONDS[part.unit] > SECONDS[before[-1]]:
            raise ValueError("units are not in order")
        before.append(part.unit)
        yield part.count * SECONDS[part.unit]
