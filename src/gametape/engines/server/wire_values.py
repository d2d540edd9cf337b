"""Reads single values of a server's events; raises `TypeError` for those of another type."""

UNREADABLE = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)
"""What reading an event of an unexpected shape may raise."""


def read_text(value: object) -> str:
    """A text that may be missing."""
    if isinstance(value, str):
        return value
    if value:
        raise TypeError(f"expected a text, not {type(value).__name__}")
    return ""


def read_id(value: object) -> str:
    """An id that may be missing; some servers number their calls."""
    return str(value) if type(value) is int else read_text(value)
