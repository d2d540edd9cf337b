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
    if not text.strip(" -"):
        raise ValueError("empty")
    try:
        return int(text)
    except ValueError:
        pass
    total, last, seen = 0, 10**9, set()
    if not re.fullmatch(r"\s*(-?\s*[0-9]+[A-Za-z]+\s*)+", text):
        raise ValueError("malformed")
    for count, unit in re.findall(r"(-?\s*[0-9]+)([A-Za-z]+)", text):
        size = SECONDS.get(unit.lower())
        if size is None:
            raise ValueError(f"unknown unit {unit}")
        if unit.lower() in seen:
            raise ValueError(f"repeated {unit.lower()}")
        if size > last:
            raise ValueError("order")
        seen.add(unit.lower())
        last = size
        total += int(count.replace(" ", "")) * size
    return total
