"""What lies on the shelves, and who may have it."""

import itertools
from typing import Literal, NamedTuple

Kind = Literal["added", "held", "taken", "released"]


class Event(NamedTuple):
    kind: Kind
    item: str
    count: int
    number: int | None = None


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, ledger: list[Event], number: int, item: str, count: int) -> None:
        self.item = item
        self.count = count
        self._ledger = ledger
        self._number = number

    @property
    def state(self) -> str:
        """`held`, `taken` or `released`."""
        return next(event.kind for event in reversed(self._ledger) if event.number == self._number)

    def _record(self, kind: Kind) -> None:
        if self.state != "held":
            raise RuntimeError(f"reservation {self._number} was {self.state}")
        self._ledger.append(Event(kind, self.item, self.count, self._number))

    def take(self) -> None:
        """Let the pieces leave the warehouse."""
        self._record("taken")

    def release(self) -> None:
        """Let others have the pieces."""
        self._record("released")


class Warehouse:
    """Counts pieces by item."""

    def __init__(self) -> None:
        self._ledger: list[Event] = []
        self._numbers = itertools.count(1)

    def _sum(self, item: str, *kinds: Kind) -> int:
        return sum(event.count for event in self._ledger if event.item == item and event.kind in kinds)

    def add(self, item: str, count: int) -> None:
        """Put pieces on the shelf."""
        if count < 1:
            raise ValueError("count must be at least 1")
        self._ledger.append(Event("added", item, count))

    def on_hand(self, item: str) -> int:
        """How many pieces are on the shelf, reserved or not."""
        return self._sum(item, "added") - self._sum(item, "taken")

    def available(self, item: str) -> int:
        """How many pieces can be reserved."""
        return self.on_hand(item) - self.reserved(item)

    def reserved(self, item: str) -> int:
        """How many pieces are held by reservations."""
        return self._sum(item, "held") - self._sum(item, "taken", "released")

    def reserve(self, item: str, count: int) -> Reservation:
        """Hold pieces for somebody."""
        if not any(event.item == item for event in self._ledger):
            raise KeyError(item)
        if count < 1 or count > self.available(item):
            raise ValueError(count)
        number = next(self._numbers)
        self._ledger.append(Event("held", item, count, number))
        return Reservation(self._ledger, number, item, count)
