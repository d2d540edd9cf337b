"""Sets of whole numbers, kept as intervals."""

import types


class _Duck(type):
    def __instancecheck__(cls, instance):
        """Whatever can tell its intervals is an IntervalSet to the set operations."""
        return super().__instancecheck__(instance) or callable(getattr(instance, "intervals", None))


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet(metaclass=_Duck):
    """A set of whole numbers."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []

    def __class_getitem__(cls, item):
        return types.GenericAlias(cls, item)

    def __or__(self, other):
        if not isinstance(other, IntervalSet):
            return NotImplemented
        both = IntervalSet()
        for first, last in [*self.intervals(), *other.intervals()]:
            both.add(first, last)
        return both

    def intervals(self) -> list[tuple[int, int]]:
        """The intervals, both ends included, in order and as few as possible."""
        return list(zip(self._first, self._last))

    def _replace(self, pairs) -> None:
        pairs = sorted(pairs)
        self._first = [first for first, _ in pairs]
        self._last = [last for _, last in pairs]

    def add(self, first: int, last: int) -> None:
        """Put all numbers from first to last in."""
        self._refuse(first, last)
        near = [(a, b) for a, b in self.intervals() if a <= last + 1 and b >= first - 1]
        far = [pair for pair in self.intervals() if pair not in near]
        self._replace([*far, (min([first, *(a for a, _ in near)]), max([last, *(b for _, b in near)]))])

    def remove(self, first: int, last: int) -> None:
        """Take all numbers from first to last out."""
        self._refuse(first, last)
        pieces = []
        for a, b in self.intervals():
            pieces += [(a, min(b, first - 1)), (max(a, last + 1), b)]
        self._replace((a, b) for a, b in pieces if a <= b)

    @staticmethod
    def _refuse(first, last):
        if first > last:
            raise ValueError(f"{first} is above {last}")

    def gaps(self) -> list[tuple[int, int]]:
        """What is missing between the first and the last number."""
        return [(b + 1, a - 1) for a, b in zip(self._first[1:], self._last)]

    def __contains__(self, number: int) -> bool:
        return any(a <= number <= b for a, b in self.intervals())

    def __len__(self) -> int:
        return sum(self._last) - sum(self._first) + len(self._first)
