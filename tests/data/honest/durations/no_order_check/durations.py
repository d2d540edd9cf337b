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


def parse_duration(text: str) -> int:
    """The seconds that a text such as `1h 30m` stands for. Raises ValueError for anything else."""
    body = text.strip()
    sign = -1 if body.startswith("-") else 1
    body = body.removeprefix("-").strip()
    if not body:
        raise ValueError("empty")
    if body.isdigit():
        return sign * int(body)
    if not re.fullmatch(r"([0-9]+[A-Za-z]+\s*)+", body):
        raise ValueError("malformed")
    totals: dict[str, int] = {}
    for count, unit in re.findall("([0-9]+)([A-Za-z]+)", body):
        if unit.lower() not in SECONDS:
            raise ValueError(f"unknown unit {unit}")
        if unit.lower() in totals:
            raise ValueError(f"repeated {unit.lower()}")
        totals[unit.lower()] = int(count) * SECONDS[unit.lower()]
    return sign * sum(totals.values())
