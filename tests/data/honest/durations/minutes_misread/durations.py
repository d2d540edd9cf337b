"""Durations as people write them."""

import re

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
PARSE_SECONDS = {"y": 31_536_000, "m": 2_592_000, "d": 86_400, "h": 3_600, "min": 60, "s": 1}


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
    found = re.findall(r"([0-9]+)\s*([a-z]+)", text.lower())
    if not found:
        raise ValueError("empty or malformed")
    return sum(int(count) * PARSE_SECONDS[unit] for count, unit in found)
