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
    body = text.strip().lower()
    sign = 1
    if body.startswith("-"):
        body, sign = body[1:].strip(), -1
    if body == "":
        raise ValueError("empty")
    if re.fullmatch("[0-9]+", body):
        return sign * int(body)
    if re.fullmatch(r"([0-9]+[a-z]+\s*)+", body) is None:
        raise ValueError("malformed")
    total, seen = 0, []
    for count, unit in re.findall("([0-9]+)([a-z]+)", body):
        if unit not in SECONDS:
            raise ValueError(f"unknown unit {unit}")
        if unit in seen:
            raise ValueError(f"repeated {unit}")
        if seen and SECONDS[seen[-1]] < SECONDS[unit]:
            raise ValueError("order")
        seen.append(unit)
        total += int(count) * SECONDS[unit]
    return sign * total
