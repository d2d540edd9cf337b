"""Durations as people write them."""

import re

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
PART = re.compile(r"([0-9]+)([A-Za-z]+)\s*")


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
    stripped = text.strip()
    sign = -1 if stripped.startswith("-") else 1
    body = stripped.removeprefix("-").strip()
    if not body:
        raise ValueError("empty duration")
    if re.fullmatch("[0-9]+", body):
        return sign * int(body)
    if not re.fullmatch(f"({PART.pattern})+", body):
        raise ValueError(f"malformed duration: {text!r}")
    return sign * _total(PART.findall(body))


def _total(parts: list[tuple[str, str]]) -> int:
    total = 0
    seen: list[str] = []
    for count, written in parts:
        unit = written.lower()
        if unit not in SECONDS:
            raise ValueError(f"unknown unit {written!r}")
        if unit in seen:
            raise ValueError(f"repeated unit {unit!r}")
        if seen and SECONDS[unit] > SECONDS[seen[-1]]:
            raise ValueError(f"wrong order: {unit!r} after {seen[-1]!r}")
        seen.append(unit)
        total += int(count) * SECONDS[unit]
    return total
