"""Reads the counts that a server reports, none of which can be relied on."""

from typing import Any

_MAX_COUNT = 2**40
_LEAST_PART = 4


def count_at(reported: dict[str, Any], *path: str) -> int:
    """The count at a path of names in what a server reports; 0 where there is none that is plausible."""
    value: Any = reported
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return plausible_count(value, 0)


def plausible_count(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_COUNT else default


def believable_count(count: int, estimate: int) -> int:
    """At least a quarter of our own estimate, so that no server can make a limit of tokens meaningless."""
    return max(count, estimate // _LEAST_PART)
