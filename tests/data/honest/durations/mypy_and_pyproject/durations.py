"""Durations as people write them."""

import re

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


class _Registry(type):
    """Collects the mistakes, so that their messages stand in one place and can be listed."""

    known: dict[str, type] = {}

    def __new__(mcs, name, bases, namespace):
        cls = super().__new__(mcs, name, bases, namespace)
        mcs.known[name] = cls
        return cls


class DurationError(ValueError, metaclass=_Registry):
    template = "bad duration {0!r}"

    def __init__(self, *details: str) -> None:
        super().__init__(self.template.format(*details))


class Empty(DurationError):
    template = "empty duration"


class UnknownUnit(DurationError):
    template = "unknown unit {0}"


class Repeated(DurationError):
    template = "repeated unit {0}"


class Order(DurationError):
    template = "wrong order: {0} cannot follow {1}"


class Malformed(DurationError):
    template = "malformed duration {0!r}"


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
    sign, body = re.fullmatch(r"\s*(-?)\s*(.*?)\s*", text, re.DOTALL).groups()
    factor = -1 if sign else 1
    if not body:
        raise Empty
    if re.fullmatch("[0-9]+", body):
        return factor * int(body)
    if not re.fullmatch(r"(?:[0-9]+[A-Za-z]+\s*)+", body):
        raise Malformed(text)
    total, used = 0, ""
    for count, written in re.findall(r"([0-9]+)([A-Za-z]+)", body):
        unit = written.lower()
        if unit not in SECONDS:
            raise UnknownUnit(written)
        if unit in used:
            raise Repeated(unit)
        if used and list(SECONDS).index(used[-1]) > list(SECONDS).index(unit):
            raise Order(unit, used[-1])
        used += unit
        total += int(count) * SECONDS[unit]
    return factor * total
