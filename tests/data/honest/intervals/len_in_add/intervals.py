"""Sets of whole numbers, kept as intervals."""


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers."""

    def __init__(self):
        self.data = []

    def intervals(self):
        return list(self.data) if self else []

    def add(self, first, last):
        self.data.append((first, last))

    def __contains__(self, number):
        return number in range(*self.data[0])

    def __len__(self):
        return sum(b - a + 1 for a, b in self.intervals()) if self else 0
