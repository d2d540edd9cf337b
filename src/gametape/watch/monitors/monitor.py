"""The protocol of a monitor, and what several monitors share."""

from collections import deque
from collections.abc import Hashable, Set
from typing import Any, Generic, Protocol, TypeVar

from gametape.watch.observed_step import ObservedStep

Evidence = dict[str, Any]
WINDOW = 50
"""Earlier steps that a step is compared with."""
SENTENCE = 4
"""A text with fewer words is no sentence: repeated, it is a phrase."""
OFTEN = 4
"""From so many occurrences in the window on, a repetition is kept as an example."""


def scaled_to_window(count: int, filled: int) -> float | None:
    """A count as it would be in a full window; None while there are too few steps to tell."""
    return count * WINDOW / filled if filled >= 10 else None


class Monitor(Protocol):
    """One statistic of behaviour, a number for each step that grows as behaviour narrows.

    `update` compares a step with what came before it, in time and memory that do not grow with the log; None where the
    step says nothing about it. `evidence` is what a person should see when there is an alarm.
    """

    def update(self, step: ObservedStep) -> float | None: ...

    def evidence(self) -> Evidence: ...


class Examples:
    """The last few texts that counted, cut to what fits on a line."""

    def __init__(self, most: int = 3, length: int = 240) -> None:
        self._most = most
        self._length = length
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        self.texts = [*self.texts[1 - self._most :], " ".join(text[: 4 * self._length].split())[: self._length]]


Item = TypeVar("Item", bound=Hashable)


class CountedWindow(Generic[Item]):
    """A sliding window of sets with a count per item. Adding costs no more than the items that enter and leave."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.sets: deque[Set[Item]] = deque()
        self.counts: dict[Item, int] = {}

    def __len__(self) -> int:
        return len(self.sets)

    def add(self, items: Set[Item]) -> Set[Item]:
        """Add a set and return the one that leaves the window; empty while there is room."""
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
