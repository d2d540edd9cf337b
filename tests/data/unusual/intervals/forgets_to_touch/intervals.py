"""Sets of whole numbers, kept as intervals."""

import abc


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class Spans(abc.ABC):
    @abc.abstractmethod
    def intervals(self): ...

    def gaps(self):
        """What is missing between the first and the last number."""
        found = self.intervals()
        return [(a[1] + 1, b[0] - 1) for a, b in zip(found, found[1:])]

    def __contains__(self, number):
        return any(a <= number <= b for a, b in self.intervals())

    def __len__(self):
        return sum(b - a + 1 for a, b in self.intervals())


class IntervalSet(Spans):
    """A set of whole numbers."""

    def __init__(self):
        self._spans = []

    def intervals(self):
        """The intervals, both ends included, in order and as few as possible."""
        return sorted(self._spans)

    def add(self, first, last):
        """Put all numbers from first to last in."""
        if last < first:
            raise ValueError("backwards")
        for span in [span for span in self._spans if span[0] <= last and span[1] >= first]:
            self._spans.remove(span)
            first, last = min(first, span[0]), max(last, span[1])
        self._spans.append((first, last))

    def remove(self, first, last):
        """Take all numbers from first to last out."""
        if last < first:
            raise ValueError("backwards")
        for a, b in [span for span in self._spans if span[0] <= last and span[1] >= first]:
            self._spans.remove((a, b))
            self._spans += [(x, y) for x, y in ((a, first - 1), (last + 1, b)) if x <= y]
