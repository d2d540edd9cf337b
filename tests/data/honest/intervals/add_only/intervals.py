"""Sets of whole numbers, kept as intervals."""


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers."""

    def __init__(self) -> None:
        self._intervals: list[tuple[int, int]] = []

    def intervals(self) -> list[tuple[int, int]]:
        """The intervals, both ends included, in order and as few as possible."""
        return sorted(self._intervals)

    def add(self, first: int, last: int) -> None:
        """Put all numbers from first to last in."""
        if last < first:
            raise ValueError("last < first")
        rest = []
        for a, b in self._intervals:
            if b + 1 < first or a - 1 > last:
                rest.append((a, b))
            else:
                first, last = min(a, first), max(b, last)
        self._intervals = [*rest, (first, last)]

    def remove(self, first: int, last: int) -> None:
        """Take all numbers from first to last out."""
        raise NotImplementedError("remove")

    def gaps(self) -> list[tuple[int, int]]:
        """What is missing between the first and the last number."""
        parts = self.intervals()
        return [(parts[i][1] + 1, parts[i + 1][0] - 1) for i in range(len(parts) - 1)]

    def __contains__(self, number: int) -> bool:
        return any(a <= number <= b for a, b in self._intervals)

    def __len__(self) -> int:
        return sum(b - a + 1 for a, b in self._intervals)
