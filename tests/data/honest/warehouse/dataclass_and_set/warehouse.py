"""What lies on the shelves, and who may have it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False)
class Reservation:
    """Some pieces of one item that are kept for somebody."""

    item: str
    count: int
    _warehouse: Warehouse = field(repr=False)
    _state: str = "held"

    @property
    def state(self) -> str:
        """`held`, `taken` or `released`."""
        return self._state

    def take(self) -> None:
        """Let the pieces leave the warehouse."""
        self._warehouse._end(self, "taken", leaving=self.count)

    def release(self) -> None:
        """Let others have the pieces."""
        self._warehouse._end(self, "released", leaving=0)


class Warehouse:
    """Counts pieces by item."""

    def __init__(self) -> None:
        self._on_hand: dict[str, int] = {}
        self._open: set[Reservation] = set()

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
        return sum(each.count for each in self._open if each.item == item)

    def reserve(self, item: str, count: int) -> Reservation:
        """Hold pieces for somebody."""
        if item not in self._on_hand:
            raise KeyError(f"never added: {item}")
        if not 0 < count <= self.available(item):
            raise ValueError(f"cannot reserve {count}")
        reservation = Reservation(item, count, self)
        self._open.add(reservation)
        return reservation

    def _end(self, reservation: Reservation, state: str, leaving: int) -> None:
        try:
            self._open.remove(reservation)
        except KeyError:
            raise RuntimeError(f"the reservation is {reservation.state}") from None
        reservation._state = state
        self._on_hand[reservation.item] -= leaving
