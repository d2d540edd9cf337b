"""Sets of whole numbers, kept as intervals."""

from itertools import pairwise


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers."""

    def __init__(self):
        self._i = []

    def intervals(self):
        return list(self._i)

    def add(self, first, last):
        if first > last:
            raise ValueError
        near = [p for p in self._i if p[0] <= last + 1 and first <= p[1] + 1]
        self._i = sorted(
            [p for p in self._i if p not in near]
            + [(min([first] + [p[0] for p in near]), max([last] + [p[1] for p in near]))]
        )

    def remove(self, first, last):
        if first > last:
            raise ValueError
        cut = [q for a, b in self._i for q in ((a, min(b, first - 1)), (max(a, last + 1), b))]
        self._i = [q for q in cut if q[0] <= q[1]]

    def gaps(self):
        return [(a[1] + 1, b[0] - 1) for a, b in pairwise(self._i)]

    def __contains__(self, number):
        return any(a <= number <= b for a, b in self._i)

    def __len__(self):
        return sum(b - a for a, b in self._i)
