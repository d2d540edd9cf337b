"""Sets of whole numbers, kept as intervals."""


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers."""

    def __init__(self):
        self.parts = []

    def intervals(self):
        return self.parts

    def add(self, first, last):
        if last < first:
            raise ValueError
        for part in list(self.parts):
            if part[0] <= last and first <= part[1]:
                self.parts.remove(part)
                first, last = min(first, part[0]), max(last, part[1])
        self.parts.append((first, last))
        self.parts.sort()

    def remove(self, first, last):
        if last < first:
            raise ValueError
        old, self.parts = self.parts, []
        for a, b in old:
            if a < first:
                self.parts.append((a, min(b, first - 1)))
            if b > last:
                self.parts.append((max(a, last + 1), b))

    def gaps(self):
        return [(x[1] + 1, y[0] - 1) for x, y in zip(self.parts, self.parts[1:])]

    def __contains__(self, number):
        return any(a <= number <= b for a, b in self.parts)

    def __len__(self):
        return sum(b - a + 1 for a, b in self.parts)
