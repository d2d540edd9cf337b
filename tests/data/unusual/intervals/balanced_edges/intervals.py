"""Sets of whole numbers, kept as intervals."""

import bisect


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers: it flips at each edge."""

    __slots__ = ("_edges",)

    def __init__(self):
        self._edges = []

    def _paint(self, first, last, inside):
        if last < first:
            raise ValueError(f"from {first} to {last} is backwards")
        stop = last + 1
        low = bisect.bisect_left(self._edges, first)
        high = bisect.bisect_right(self._edges, stop)
        middle = []
        if (low % 2 == 1) != inside:
            middle.append(first)
        if (high % 2 == 1) != inside:
            middle.append(stop)
        self._edges[low:high] = middle

    def add(self, first, last):
        """Put all numbers from first to last in."""
        self._paint(first, last, True)

    def remove(self, first, last):
        """Take all numbers from first to last out."""
        self._paint(first, last, False)

    def intervals(self):
        """The intervals, both ends included, in order and as few as possible."""
        flips = iter(self._edges)
        return [(start, stop - 1) for start, stop in zip(flips, flips)]

    def gaps(self):
        """What is missing between the first and the last number."""
        flips = iter(self._edges[1:-1])
        return [(start, stop - 1) for start, stop in zip(flips, flips)]

    def __contains__(self, number):
        return bisect.bisect_right(self._edges, number) % 2 == 1

    def __len__(self):
        return sum(stop - start + 1 for start, stop in self.intervals())
