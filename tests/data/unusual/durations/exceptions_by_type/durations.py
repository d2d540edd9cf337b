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


_FAULTS = {
    "Empty": "empty duration",
    "Malformed": "malformed duration {0!r}",
    "UnknownUnit": "unknown unit {0!r}",
    "Repeated": "repeated unit {0!r}",
    "WrongOrder": "units in the wrong order near {0!r}",
}


def _make(name, message):
    def __init__(self, *details):
        ValueError.__init__(self, message.format(*details))

    return type(name, (ValueError,), {"__init__": __init__, "__module__": __name__})


globals().update({name: _make(name, message) for name, message in _FAULTS.items()})


def _fail(name, *details):
    raise globals()[name](*details)


def parse_duration(text: str) -> int:
    """The seconds that a text such as `1h 30m` stands for. Raises ValueError for anything else."""
    match = re.fullmatch(r"\s*(-?)\s*(.*?)\s*", text, re.DOTALL)
    sign, body = match.groups()
    if not body:
        _fail("Empty")
    if re.fullmatch("[0-9]+", body):
        return int(sign + body)
    if re.sub(r"[0-9]+[A-Za-z]+(\s+|(?=[0-9])|$)", "", body):
        _fail("Malformed", text)
    total, smallest = 0, float("inf")
    for count, unit in re.findall("([0-9]+)([A-Za-z]+)", body):
        size = SECONDS.get(unit.lower()) or _fail("UnknownUnit", unit)
        if unit.lower() in re.findall("[a-z]+", body[: body.lower().find(count + unit.lower())].lower()):
            _fail("Repeated", unit.lower())
        if size == smallest:
            _fail("Repeated", unit.lower())
        if size > smallest:
            _fail("WrongOrder", unit)
        smallest = size
        total += int(count) * size
    return -total if sign else total
