"""Durations as people write them."""

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
DIGITS = "0123456789"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


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


def _span(text: str, start: int, allowed: str) -> int:
    end = start
    while end < len(text) and text[end].lower() in allowed:
        end += 1
    return end


def _parts(text: str, start: int = 0) -> list[tuple[int, str]]:
    while start < len(text) and text[start].isspace():
        start += 1
    if start == len(text):
        return []
    number_end = _span(text, start, DIGITS)
    unit_end = _span(text, number_end, LETTERS)
    if number_end == start or unit_end == number_end:
        raise ValueError(f"malformed: {text[start:]!r}")
    assert unit_end > start, "every step consumes something"
    return [(int(text[start:number_end]), text[number_end:unit_end]), *_parts(text, unit_end)]


def parse_duration(text: str) -> int:
    """The seconds that a text such as `1h 30m` stands for. Raises ValueError for anything else."""
    body = text.strip()
    if body.startswith("-"):
        rest = body[1:].strip()
        if rest.startswith("-"):
            raise ValueError("malformed: two signs")
        return -parse_duration(rest)
    if not body:
        raise ValueError("empty")
    if all(character in DIGITS for character in body):
        return int(body)
    order = "dhms"
    total, passed = 0, ""
    for count, written in _parts(body):
        unit = written.lower()
        if unit not in SECONDS:
            raise ValueError(f"unknown unit {written}")
        if unit in passed:
            raise ValueError(f"repeated {unit}")
        if passed and order.index(unit) < order.index(passed[-1]):
            raise ValueError("order of units")
        passed += unit
        total += count * SECONDS[unit]
    return total
