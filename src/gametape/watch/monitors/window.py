"""The last so many sets of items, and how many of them hold each item."""

from collections import deque
from collections.abc import Hashable, Set
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


class CountedWindow(Generic[Item]):
    """Adding costs no more than the items that come and go."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.sets: deque[Set[Item]] = deque()
        self.counts: dict[Item, int] = {}

    def __len__(self) -> int:
        return len(self.sets)

    def add(self, items: Set[Item]) -> Set[Item]:
        """What leaves the window in turn: nothing while there is room."""
        self.sets.append(items)
        counts = self.counts
        for item in items:
            counts[item] = counts.get(item, 0) + 1
        if len(self.sets) <= self.length:
            return frozenset()
        leaving = self.sets.popleft()
        for item in leaving:
            if counts[item] == 1:
                del counts[item]
            else:
                counts[item] -= 1
        return leaving
