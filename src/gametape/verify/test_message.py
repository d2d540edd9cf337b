"""What a failed test said, as one line that people read: `slugify('a b'): expected 'a-b', got 'a b'`."""

import re

_ERROR_LINE = re.compile(r"^E\s+(.*)$", re.MULTILINE)
_COMPARISON = re.compile(r"(?:AssertionError: )?assert (.+?) == (.+)")
_CALL_INDENT = "  "


def compared_values(message: str) -> tuple[str, str] | None:
    """What a failed `==` expected and what it got, as pytest writes them."""
    sides = next(filter(None, map(_COMPARISON.fullmatch, _ERROR_LINE.findall(message))), None)
    return (sides.group(2), sides.group(1)) if sides else None


def add_call(message: str, call: str) -> str:
    """A message whose last line says what was called and what came. The indent keeps it apart from pytest's lines."""
    return f"{message}\n{_CALL_INDENT}{call}"


def summarize_message(message: str) -> str:
    """The call and the values where the message has them, else the first error, on one line."""
    lines = message.rstrip().splitlines()
    if lines and lines[-1].startswith(_CALL_INDENT):
        return lines[-1].strip()
    if values := compared_values(message):
        return " ".join(f"expected {values[0]}, got {values[1]}".split())
    found = _ERROR_LINE.findall(message)
    text = found[0] if found else lines[-1] if lines else ""
    return " ".join(text.removeprefix("AssertionError: ").split())
