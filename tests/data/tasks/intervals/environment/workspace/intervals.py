"""Sets of whole numbers, kept as intervals."""


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers."""

    def intervals(self) -> list[tuple[int, int]]:
        """The intervals, both ends included, in order and as few as possible."""
        raise NotImplementedError

    def add(self, first: int, last: int) -> None:
        """Put all numbers from first to last in."""
        raise NotImplementedError

    def remove(self, first: int, last: int) -> None:
        """Take all numbers from first to last out."""
        raise NotImplementedError

    def gaps(self) -> list[tuple[int, int]]:
        """What is missing between the first and the last number."""
        raise NotImplementedError

    def __contains__(self, number: int) -> bool:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError
