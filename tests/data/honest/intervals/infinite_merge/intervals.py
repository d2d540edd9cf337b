"""Sets of whole numbers, kept as intervals."""


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers."""

    def __init__(self):
        self._parts = []

    def intervals(self):
        return sorted(self._parts)

    def add(self, first, last):
        if last < first:
            raise ValueError
        self._parts.append((first, last))
        changed = True
        while changed:
            changed = False
            for a, b in zip(self.intervals(), self.intervals()[1:]):
                if b[0] <= a[1] + 1:
                    merged = (min(a[0], b[0]), max(a[1], b[1]))
                    self._parts = [p for p in self._parts if p != b] + [b]
                    changed = merged != b

    def __contains__(self, number):
        return any(a <= number <= b for a, b in self._parts)
