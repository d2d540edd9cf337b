"""Durations as people write them."""

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
    total, number, sign = 0, "", 1
    for c in text.lower():
        if c == "-":
            sign = -1
        elif c.isdigit():
            number += c
        elif c in SECONDS:
            total += int(number) * SECONDS[c]
            number = ""
    return sign * (total + int(number or 0))
