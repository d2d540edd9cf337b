"""What lies on the shelves, and who may have it."""

from collections import defaultdict
from enum import StrEnum, auto


class State(StrEnum):
    HELD = auto()
    TAKEN = auto()
    RELEASED = auto()


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, shelf: "_Shelf", item: str, count: int) -> None:
        self.item, self.count = item, count
        self._shelf = shelf
        self._state = State.HELD

    @property
    def state(self) -> str:
        """`held`, `taken` or `released`."""
        return self._state

    def take(self) -> None:
        """Let the pieces leave the warehouse."""
        self._must_be_held()
        self._shelf.held -= self.count
        self._shelf.pieces -= self.count
        self._state = State.TAKEN

    def release(self) -> None:
        """Let others have the pieces."""
        self._must_be_held()
        self._shelf.held -= self.count
        self._state = State.RELEASED

    def _must_be_held(self) -> None:
        if self._state is not State.HELD:
            raise RuntimeError(f"{self._state} already")


class _Shelf:
    __slots__ = ("held", "known", "pieces")

    def __init__(self) -> None:
        self.pieces = self.held = 0
        self.known = False


class Warehouse:
    """Counts pieces by item."""

    def __init__(self) -> None:
        self._shelves: defaultdict[str, _Shelf] = defaultdict(_Shelf)

    def add(self, item: str, count: int) -> None:
        """Put pieces on the shelf."""
        if count < 1:
            raise ValueError("count must be at least 1")
        self._shelves[item].pieces += count
        self._shelves[item].known = True

    def on_hand(self, item: str) -> int:
        """How many pieces are on the shelf, reserved or not."""
        return self._shelves[item].pieces

    def available(self, item: str) -> int:
        """How many pieces can be reserved."""
        return self._shelves[item].pieces - self._shelves[item].held

    def reserved(self, item: str) -> int:
        """How many pieces are held by reservations."""
        return self._shelves[item].held

    def reserve(self, item: str, count: int) -> Reservation:
        """Hold pieces for somebody."""
        shelf = self._shelves[item]
        if not shelf.known:
            raise KeyError(item)
        if count < 1 or self.available(item) < count:
            raise ValueError(f"{count} of {item}")
        shelf.held += count
        return Reservation(shelf, item, count)
