"""Durations as people write them."""

import re
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Ok:
    value: Any

    def then(self, function):
        return function(self.value)


@dataclass(frozen=True)
class Wrong:
    why: str

    def then(self, _function):
        return self


def _body(text):
    body = text.strip()
    sign, body = (-1, body[1:].strip()) if body.startswith("-") else (1, body)
    return Ok((sign, body)) if body else Wrong("empty")


def _tokens(pair):
    sign, body = pair
    if re.fullmatch(r"[0-9]+", body):
        return Ok((sign, [(int(body), "s")]))
    if not re.fullmatch(r"(?:[0-9]+[A-Za-z]+\s*)+", body):
        return Wrong("malformed")
    return Ok((sign, [(int(count), unit) for count, unit in re.findall(r"([0-9]+)([A-Za-z]+)", body)]))


def _checked(pair):
    sign, tokens = pair
    seen = []
    for _count, unit in tokens:
        size = SECONDS.get(unit.lower())
        if size is None:
            return Wrong(f"unknown unit: {unit}")
        if size in seen:
            return Wrong(f"repeated: {unit.lower()}")
        if seen and size > seen[-1]:
            return Wrong("wrong order")
        seen.append(size)
    return Ok(sign * sum(count * size for (count, _), size in zip(tokens, seen)))


def parse_duration(text: str) -> int:
    """The seconds that a text such as `1h 30m` stands for. Raises ValueError for anything else."""
    match _body(text).then(_tokens).then(_checked):
        case Ok(value):
            return value
        case Wrong(why):
            raise ValueError(why)
