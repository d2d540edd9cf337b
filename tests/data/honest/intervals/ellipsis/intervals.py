"""Sets of whole numbers, kept as intervals."""


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers."""

    def intervals(self) -> list[tuple[int, int]]: ...

    def add(self, first: int, last: int) -> None: ...

    def remove(self, first: int, last: int) -> None: ...

    def gaps(self) -> list[tuple[int, int]]: ...

    def __contains__(self, number: int) -> bool: ...

    def __len__(self) -> int: ...
