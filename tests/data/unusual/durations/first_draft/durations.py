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
    if not text.strip():
        raise ValueError("empty")
    sign = -1 if text.strip()[0] == "-" else 1
    parts = re.findall(r"([0-9]+)([dhms]?)", text.lower())
    if not parts:
        raise ValueError("malformed")
    return sign * sum(int(count) * SECONDS[unit or "s"] for count, unit in parts)
