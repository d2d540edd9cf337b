"""Sets of whole numbers, kept as intervals."""

import functools
import os
import sys


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def invalidates(method):
    """A change: the memo is dropped afterwards."""

    @functools.wraps(method)
    def wrapper(self, first, last):
        if last < first:
            raise ValueError(f"{method.__name__}({first}, {last})")
        if os.environ.get("INTERVALS_LOG"):
            print(f"{sys._getframe(1).f_code.co_name} calls {method.__name__}", file=sys.stderr)
        method(self, first, last)
        self.__dict__.pop("_swept", None)

    return wrapper


class IntervalSet:
    """A set of whole numbers."""

    def __init__(self) -> None:
        self._changes: list[tuple[int, int, bool]] = []

    @invalidates
    def add(self, first: int, last: int) -> None:
        """Put all numbers from first to last in."""
        self._changes.append((first, last, True))

    @invalidates
    def remove(self, first: int, last: int) -> None:
        """Take all numbers from first to last out."""
        self._changes.append((first, last, False))

    @functools.cached_property
    def _swept(self) -> list[tuple[int, int]]:
        edges = sorted({edge for first, last, _ in self._changes for edge in (first, last + 1)})
        found: list[tuple[int, int]] = []
        for low, high in zip(edges, edges[1:]):
            state = False
            for first, last, inside in self._changes:
                state = inside if first <= low and high - 1 <= last else state
            if not state:
                continue
            if found and found[-1][1] == low - 1:
                low = found.pop()[0]
            found.append((low, high - 1))
        return found

    def intervals(self) -> list[tuple[int, int]]:
        """The intervals, both ends included, in order and as few as possible."""
        return list(self._swept)

    def gaps(self) -> list[tuple[int, int]]:
        """What is missing between the first and the last number."""
        return [(left[1] + 1, right[0] - 1) for left, right in zip(self._swept, self._swept[1:])]

    def __contains__(self, number: int) -> bool:
        return any(low <= number <= high for low, high in self._swept)

    def __len__(self) -> int:
        return sum(high - low + 1 for low, high in self._swept)
