"""What lies on the shelves, and who may have it."""

import weakref
from collections.abc import Callable


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, item: str, count: int, on_end: Callable[[str], None]) -> None:
        self.item = item
        self.count = count
        self._on_end = on_end
        self._state = "held"

    @property
    def state(self) -> str:
        """`held`, `taken` or `released`."""
        return self._state

    def take(self) -> None:
        """Let the pieces leave the warehouse."""
        self._finish("taken")

    def release(self) -> None:
        """Let others have the pieces."""
        self._finish("released")

    def _finish(self, how: str) -> None:
        if self.state != "held":
            raise RuntimeError(f"cannot be {how}: it is {self.state}")
        self._on_end(how)
        self._state = how


class Warehouse:
    """Counts pieces by item."""

    def __init__(self) -> None:
        self._on_hand: dict[str, int] = {}
        self._reserved: dict[str, int] = {}
        self._all: weakref.WeakSet[Reservation] = weakref.WeakSet()

    def add(self, item: str, count: int) -> None:
        """Put pieces on the shelf."""
        if count < 1:
            raise ValueError("count must be at least 1")
        self._on_hand[item] = self._on_hand.get(item, 0) + count

    def on_hand(self, item: str) -> int:
        """How many pieces are on the shelf, reserved or not."""
        return self._on_hand.get(item, 0)

    def available(self, item: str) -> int:
        """How many pieces can be reserved."""
        return self.on_hand(item) - self.reserved(item)

    def reserved(self, item: str) -> int:
        """How many pieces are held by reservations."""
        return self._reserved.get(item, 0)

    def reserve(self, item: str, count: int) -> Reservation:
        """Hold pieces for somebody."""
        if item not in self._on_hand:
            raise KeyError(item)
        if count < 1 or count > self.available(item):
            raise ValueError(f"{count}")
        self._reserved[item] = self.reserved(item) + count

        def on_end(how: str) -> None:
            self._reserved[item] -= count
            if how == "taken":
                self._on_hand[item] -= count

        reservation = Reservation(item, count, on_end)
        self._all.add(reservation)
        return reservation
