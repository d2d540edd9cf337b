"""Sets of whole numbers, kept as intervals."""

from typing import NamedTuple, Optional


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class Cell(NamedTuple):
    first: int
    last: int
    rest: Optional["Cell"]


def _with(cell, first, last):
    if cell is None or last + 1 < cell.first:
        return Cell(first, last, cell)
    if cell.last + 1 < first:
        return Cell(cell.first, cell.last, _with(cell.rest, first, last))
    return _with(cell.rest, min(first, cell.first), max(last, cell.last))


def _without(cell, first, last):
    if cell is None:
        return None
    rest = _without(cell.rest, first, last)
    if cell.last > last:
        rest = Cell(max(cell.first, last + 1), cell.last, rest)
    if cell.first < first:
        rest = Cell(cell.first, min(cell.last, first - 1), rest) if cell.last >= first else cell._replace(rest=rest) if cell.last <= last else rest
    return rest


def _checked(function):
    def method(self, first, last):
        if not first <= last:
            raise ValueError("backwards")
        self._cells = function(self._cells, first, last)

    method.__name__ = function.__name__.strip("_")
    return method


class IntervalSet:
    """A set of whole numbers."""

    _cells = None

    add = _checked(_with)
    remove = _checked(_without)

    def __iter__(self):
        cell = self._cells
        while cell:
            yield cell.first, cell.last
            cell = cell.rest

    def intervals(self):
        """The intervals, both ends included, in order and as few as possible."""
        return list(self)

    def gaps(self):
        """What is missing between the first and the last number."""
        found = self.intervals()
        return [(a[1] + 1, b[0] - 1) for a, b in zip(found, found[1:])]

    def __contains__(self, number):
        return any(first <= number <= last for first, last in self)

    def __len__(self):
        return sum(last - first + 1 for first, last in self)
