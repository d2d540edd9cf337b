"""Durations as people write them."""

import enum

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


class _State(enum.Enum):
    GAP = enum.auto()
    NUMBER = enum.auto()
    UNIT = enum.auto()


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
    negative = body[:1] == "-"
    if negative:
        body = body[1:].lstrip()
    if body == "":
        raise ValueError("empty")
    if body.isascii() and body.isdigit():
        return -int(body) if negative else int(body)
    total = _sum(_scan(body, text))
    return -total if negative else total


def _scan(body: str, text: str) -> list[tuple[int, str]]:
    parts: list[tuple[int, str]] = []
    number = unit = ""
    state = _State.GAP
    for character in body + " ":
        kind = "space" if character.isspace() else "digit" if "0" <= character <= "9" else "letter"
        if kind == "letter" and not (character.isascii() and character.isalpha()):
            raise ValueError(f"malformed: {text!r}")
        match state, kind:
            case (_State.GAP, "digit") | (_State.NUMBER, "digit"):
                number += character
                state = _State.NUMBER
            case (_State.NUMBER, "letter") | (_State.UNIT, "letter"):
                unit += character
                state = _State.UNIT
            case _State.UNIT, "digit" | "space":
                parts.append((int(number), unit))
                number, unit = (character, "") if kind == "digit" else ("", "")
                state = _State.NUMBER if kind == "digit" else _State.GAP
            case _State.GAP, "space":
                pass
            case _:
                raise ValueError(f"malformed: {text!r}")
    return parts


def _sum(parts: list[tuple[int, str]]) -> int:
    ranks = list(SECONDS)
    total, last, seen = 0, -1, set()
    for count, written in parts:
        unit = written.lower()
        if unit not in ranks:
            raise ValueError(f"unknown unit: {written}")
        if unit in seen:
            raise ValueError(f"repeated: {unit}")
        if ranks.index(unit) < last:
            raise ValueError(f"order: {unit} comes too late")
        seen.add(unit)
        last = ranks.index(unit)
        total += count * SECONDS[unit]
    return total
