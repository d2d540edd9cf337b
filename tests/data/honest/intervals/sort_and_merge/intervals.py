"""Sets of whole numbers, kept as intervals."""


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, int]] = []

    def intervals(self) -> list[tuple[int, int]]:
        """The intervals, both ends included, in order and as few as possible."""
        return self._parts[:]

    def add(self, first: int, last: int) -> None:
        """Put all numbers from first to last in."""
        if last < first:
            raise ValueError("backwards")
        merged: list[list[int]] = []
        for start, end in sorted([*self._parts, (first, last)]):
            if merged and start <= merged[-1][1] + 1:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        self._parts = [(start, end) for start, end in merged]

    def remove(self, first: int, last: int) -> None:
        """Take all numbers from first to last out."""
        if last < first:
            raise ValueError("backwards")
        kept = []
        for start, end in self._parts:
            if start < first:
                kept.append((start, min(end, first - 1)))
            if end > last:
                kept.append((max(start, last + 1), end))
        self._parts = kept

    def gaps(self) -> list[tuple[int, int]]:
        """What is missing between the first and the last number."""
        return [(a[1] + 1, b[0] - 1) for a, b in zip(self._parts, self._parts[1:])]

    def __contains__(self, number: int) -> bool:
        return any(start <= number <= end for start, end in self._parts)

    def __len__(self) -> int:
        return sum(end - start + 1 for start, end in self._parts)
