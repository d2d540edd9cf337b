"""Sets of whole numbers, kept as intervals."""

from itertools import pairwise


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
        return list(self._intervals)

    def add(self, first: int, last: int) -> None:
        """Put all numbers from first to last in."""
        _refuse_backwards(first, last)
        apart = []
        for start, end in self._intervals:
            if end < first - 1 or start > last + 1:
                apart.append((start, end))
            else:
                first, last = min(first, start), max(last, end)
        self._intervals = sorted([*apart, (first, last)])

    def remove(self, first: int, last: int) -> None:
        """Take all numbers from first to last out."""
        _refuse_backwards(first, last)
        pieces = []
        for start, end in self._intervals:
            pieces += [(start, min(end, first - 1)), (max(start, last + 1), end)]
        self._intervals = [(start, end) for start, end in pieces if start <= end]

    def gaps(self) -> list[tuple[int, int]]:
        """What is missing between the first and the last number."""
        return [(end + 1, start - 1) for (_, end), (start, _) in pairwise(self._intervals)]

    def __contains__(self, number: int) -> bool:
        return any(start <= number <= end for start, end in self._intervals)

    def __len__(self) -> int:
        return sum(end - start + 1 for start, end in self._intervals)


def _refuse_backwards(first: int, last: int) -> None:
    if last < first:
        raise ValueError(f"{last} is below {first}")
