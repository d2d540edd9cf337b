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
    print("parse_duration:", repr(text))
    m = re.match(r"\s*(-?)\s*(.*)", text, re.S)
    neg, body = m.group(1), m.group(2).strip()
    print("  sign", neg, "body", body)
    if not body:
        raise ValueError("empty duration")
    if body.isdigit():
        return int(neg + body)
    if not re.fullmatch(r"(\d+[a-zA-Z]+\s*)+", body):
        raise ValueError("malformed duration")
    total = 0
    used = []
    for n, u in re.findall(r"(\d+)([a-zA-Z]+)", body):
        print("  part", n, u)
        k = u.lower()
        if k not in SECONDS:
            raise ValueError("unknown unit " + u)
        if k in used:
            raise ValueError("repeated unit " + k)
        if any(SECONDS[x] < SECONDS[k] for x in used):
            raise ValueError("order of the units is wrong")
        used.append(k)
        total += int(n) * SECONDS[k]
    print("  -> 1 passed, total", total)
    return -total if neg else total
