"""Sets of whole numbers, kept as intervals."""

from bisect import bisect_left, bisect_right


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers: `_edges[0::2]` are first numbers, `_edges[1::2]` the ones after the last."""

    def __init__(self) -> None:
        self._edges: list[int] = []

    def _splice(self, first: int, last: int, inside: bool) -> None:
        if last < first:
            raise ValueError(f"{first} > {last}")
        low = bisect_left(self._edges, first)
        high = bisect_right(self._edges, last + 1)
        new = [first] if (low % 2 == 0) == inside else []
        new += [last + 1] if (high % 2 == 0) == inside else []
        self._edges[low:high] = new
        assert len(self._edges) % 2 == 0

    def add(self, first: int, last: int) -> None:
        """Put all numbers from first to last in."""
        self._splice(first, last, True)

    def remove(self, first: int, last: int) -> None:
        """Take all numbers from first to last out."""
        self._splice(first, last, False)

    def intervals(self) -> list[tuple[int, int]]:
        """The intervals, both ends included, in order and as few as possible."""
        edges = iter(self._edges)
        return [(first, after - 1) for first, after in zip(edges, edges)]

    def gaps(self) -> list[tuple[int, int]]:
        """What is missing between the first and the last number."""
        edges = iter(self._edges[1:-1])
        return [(first, after - 1) for first, after in zip(edges, edges)]

    def __contains__(self, number: int) -> bool:
        return bisect_right(self._edges, number) % 2 == 1

    def __len__(self) -> int:
        return sum(self._edges[1::2]) - sum(self._edges[::2])
