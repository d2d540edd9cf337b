"""Sets of whole numbers, kept as intervals."""

from operator import attrgetter


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _range(first: int, last: int) -> range:
    if not first <= last:
        raise ValueError("last is below first")
    return range(first, last + 1)


class IntervalSet:
    """A set of whole numbers."""

    def __init__(self) -> None:
        self._ranges: list[range] = []

    def intervals(self) -> list[tuple[int, int]]:
        """The intervals, both ends included, in order and as few as possible."""
        return [(each.start, each.stop - 1) for each in self._ranges]

    def add(self, first: int, last: int) -> None:
        """Put all numbers from first to last in."""
        new = _range(first, last)
        near = [each for each in self._ranges if each.start <= new.stop and new.start <= each.stop]
        far = [each for each in self._ranges if each not in near]
        whole = range(min(r.start for r in [new, *near]), max(r.stop for r in [new, *near]))
        self._ranges = sorted([*far, whole], key=attrgetter("start"))

    def remove(self, first: int, last: int) -> None:
        """Take all numbers from first to last out."""
        gone = _range(first, last)
        left = [range(each.start, min(each.stop, gone.start)) for each in self._ranges]
        right = [range(max(each.start, gone.stop), each.stop) for each in self._ranges]
        self._ranges = sorted(filter(None, left + right), key=attrgetter("start"))

    def gaps(self) -> list[tuple[int, int]]:
        """What is missing between the first and the last number."""
        return [(a.stop, b.start - 1) for a, b in zip(self._ranges, self._ranges[1:])]

    def __contains__(self, number: int) -> bool:
        return any(number in each for each in self._ranges)

    def __len__(self) -> int:
        return sum(map(len, self._ranges))
