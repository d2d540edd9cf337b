"""Sets of whole numbers, kept as intervals."""

LIMIT = 1_000_000


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers."""

    def __init__(self) -> None:
        self._numbers: set[int] = set()

    def add(self, first: int, last: int) -> None:
        """Put all numbers from first to last in."""
        if last < first:
            raise ValueError("backwards")
        if last - first > LIMIT:
            raise MemoryError("this many numbers are not supported yet")
        self._numbers.update(range(first, last + 1))

    def remove(self, first: int, last: int) -> None:
        """Take all numbers from first to last out."""
        if last < first:
            raise ValueError("backwards")
        self._numbers.difference_update(range(first, last + 1))

    def intervals(self) -> list[tuple[int, int]]:
        """The intervals, both ends included, in order and as few as possible."""
        found: list[tuple[int, int]] = []
        for number in sorted(self._numbers):
            if found and found[-1][1] == number - 1:
                found[-1] = (found[-1][0], number)
            else:
                found.append((number, number))
        return found

    def gaps(self) -> list[tuple[int, int]]:
        """What is missing between the first and the last number."""
        parts = self.intervals()
        return [(a[1] + 1, b[0] - 1) for a, b in zip(parts, parts[1:])]

    def __contains__(self, number: int) -> bool:
        return number in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)
