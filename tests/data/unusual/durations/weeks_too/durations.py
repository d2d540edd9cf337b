"""Durations as people write them."""

import re

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


SECONDS = {"w": 604_800, **SECONDS}
_FORMATTED = ("d", "h", "m", "s")


def parse_duration(text: str) -> int:
    """The seconds that a text such as `1h 30m` stands for. Raises ValueError for anything else."""
    body = text.strip()
    sign = -1 if body.startswith("-") else 1
    body = body.lstrip("-").strip()
    if not body:
        raise ValueError("empty")
    if body.isdigit():
        return sign * int(body)
    total, units = 0, []
    for count, unit in re.findall(r"(\d+)([a-zA-Z]+)", body):
        if unit.lower() not in SECONDS:
            raise ValueError(f"unknown unit {unit}")
        if unit.lower() in units:
            raise ValueError(f"repeated {unit.lower()}")
        if units and SECONDS[units[-1]] < SECONDS[unit.lower()]:
            raise ValueError("order")
        units.append(unit.lower())
        total += int(count) * SECONDS[unit.lower()]
    if not units:
        raise ValueError("malformed")
    return sign * total
