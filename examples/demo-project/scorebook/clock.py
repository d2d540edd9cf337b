"""The match clock: `47:10`, and `90+3` for time added on."""


def parse_clock(text: str) -> int:
    """Seconds on the clock: `47:10` is 2830, `47` whole minutes, `90+3` the third minute added."""
    base, plus, added = text.strip().partition("+")
    minutes, colon, seconds = base.partition(":")
    parts = [minutes, *([seconds] if colon else []), *([added] if plus else [])]
    if not all(part.isascii() and part.isdigit() for part in parts) or (colon and len(seconds) != 2):
        raise ValueError(f"not a time on the clock: {text!r}")
    if colon and int(seconds) > 59:
        raise ValueError(f"a minute has 60 seconds: {text!r}")
    return (int(minutes) + int(added or 0)) * 60 + int(seconds or 0)


def format_clock(seconds: int) -> str:
    """The other way round, with two digits for seconds."""
    if seconds < 0:
        raise ValueError("time does not run backwards")
    return f"{seconds // 60}:{seconds % 60:02}"


def half_of(seconds: int) -> int:
    """1 to minute 45, 2 to minute 90, 3 after that."""
    return min(3, 1 + max(0, seconds - 1) // (45 * 60))
