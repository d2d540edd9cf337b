"""Sets of whole numbers, kept as intervals."""


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers."""

    def __init__(self):
        self._spans = []

    def intervals(self):
        """The intervals, both ends included, in order and as few as possible."""
        return list(self._spans)

    def add(self, first, last):
        """Put all numbers from first to last in."""
        if last < first:
            raise ValueError("backwards")
        merged = []
        for a, b in sorted([*self._spans, (first, last)]):
            if merged and a <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(b, merged[-1][1]))
            else:
                merged.append((a, b))
        self._spans = merged

    def remove(self, first, last):
        """Take all numbers from first to last out."""
        if last < first:
            raise ValueError("backwards")
        self._spans = [(a, b) for a, b in self._spans if b < first or a > last]

    def gaps(self):
        """What is missing between the first and the last number."""
        return [(b + 1, a - 1) for (_, b), (a, _) in zip(self._spans, self._spans[1:])]

    def __contains__(self, number):
        return any(a <= number <= b for a, b in self._spans)

    def __len__(self):
        return sum(b - a + 1 for a, b in self._spans)
