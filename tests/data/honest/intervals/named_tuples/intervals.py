"""Sets of whole numbers, kept as intervals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import total_ordering
from typing import NamedTuple


class Interval(NamedTuple):
    first: int
    last: int

    def touches(self, other: Interval) -> bool:
        return self.first <= other.last + 1 and other.first <= self.last + 1

    def __or__(self, other: Interval) -> Interval:
        return Interval(min(self.first, other.first), max(self.last, other.last))

    def __sub__(self, other: Interval) -> Iterator[Interval]:
        if self.first < other.first:
            yield Interval(self.first, min(self.last, other.first - 1))
        if self.last > other.last:
            yield Interval(max(self.first, other.last + 1), self.last)


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


@total_ordering
class IntervalSet:
    """A set of whole numbers."""

    def __init__(self) -> None:
        self._all: list[Interval] = []

    def __eq__(self, other: object) -> bool:
        return self._all == other._all if isinstance(other, IntervalSet) else NotImplemented

    def __lt__(self, other: IntervalSet) -> bool:
        """A proper subset, as for sets."""
        return self != other and all(any(b.first <= a.first and a.last <= b.last for b in other._all) for a in self._all)

    __hash__ = None  # it changes

    def intervals(self) -> list[tuple[int, int]]:
        """The intervals, both ends included, in order and as few as possible."""
        return list(self._all)

    @staticmethod
    def _checked(first: int, last: int) -> Interval:
        if last < first:
            raise ValueError((first, last))
        return Interval(first, last)

    def add(self, first: int, last: int) -> None:
        """Put all numbers from first to last in."""
        new = self._checked(first, last)
        apart = []
        for each in self._all:
            if each.touches(new):
                new |= each
            else:
                apart.append(each)
        self._all = sorted([*apart, new])

    def remove(self, first: int, last: int) -> None:
        """Take all numbers from first to last out."""
        gone = self._checked(first, last)
        self._all = [piece for each in self._all for piece in each - gone]

    def gaps(self) -> list[tuple[int, int]]:
        """What is missing between the first and the last number."""
        return [(before.last + 1, after.first - 1) for before, after in zip(self._all, self._all[1:])]

    def __contains__(self, number: int) -> bool:
        return any(number >= first and number <= last for first, last in self._all)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self._all)
