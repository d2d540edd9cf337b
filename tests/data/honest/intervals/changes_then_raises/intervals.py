"""Sets of whole numbers, kept as intervals."""


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet(list):
    """A set of whole numbers."""

    def intervals(self):
        return [(a, b) for a, b in self]

    def add(self, first, last):
        first, last = sorted((first, last))
        for pair in self.intervals():
            if pair[0] <= last + 1 and first <= pair[1] + 1:
                super().remove(pair)
                first, last = min(first, pair[0]), max(last, pair[1])
        self.append((first, last))
        self.sort()

    def remove(self, first, last):
        first, last = sorted((first, last))
        self[:] = [
            (a, b)
            for x, y in self
            for a, b in ((x, min(y, first - 1)), (max(x, last + 1), y))
            if a <= b
        ]

    def gaps(self):
        pairs = self.intervals()
        return [(a[1] + 1, b[0] - 1) for a, b in zip(pairs, pairs[1:])]

    def __contains__(self, number):
        return any(a <= number <= b for a, b in self.intervals())
