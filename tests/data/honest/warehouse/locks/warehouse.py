"""What lies on the shelves, and who may have it."""

import functools
import threading


def _locked(method):
    """Run a method while the warehouse is locked."""

    @functools.wraps(method)
    def wrapper(self, *args):
        with self._lock:
            return method(self, *args)

    return wrapper


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, warehouse, item, count):
        self.item = item
        self.count = count
        self._warehouse = warehouse
        self._lock = warehouse._lock
        self._state = "held"

    @property
    def state(self) -> str:
        """`held`, `taken` or `released`."""
        with self._lock:
            return self._state

    @_locked
    def take(self) -> None:
        """Let the pieces leave the warehouse."""
        self._warehouse._settle(self, "taken")
        self._warehouse._on_hand[self.item] -= self.count

    @_locked
    def release(self) -> None:
        """Let others have the pieces."""
        self._warehouse._settle(self, "released")


class Warehouse:
    """Counts pieces by item."""

    def __init__(self) -> None:
        self._on_hand: dict[str, int] = {}
        self._held: dict[int, Reservation] = {}
        self._lock = threading.RLock()

    @_locked
    def add(self, item: str, count: int) -> None:
        """Put pieces on the shelf."""
        if count < 1:
            raise ValueError("count must be at least 1")
        self._on_hand[item] = self._on_hand.get(item, 0) + count

    @_locked
    def on_hand(self, item: str) -> int:
        """How many pieces are on the shelf, reserved or not."""
        return self._on_hand.get(item, 0)

    @_locked
    def available(self, item: str) -> int:
        """How many pieces can be reserved."""
        return self.on_hand(item) - self.reserved(item)

    @_locked
    def reserved(self, item: str) -> int:
        """How many pieces are held by reservations."""
        return sum(each.count for each in self._held.values() if each.item == item)

    @_locked
    def reserve(self, item: str, count: int) -> Reservation:
        """Hold pieces for somebody."""
        if item not in self._on_hand:
            raise KeyError(item)
        if not 1 <= count <= self.available(item):
            raise ValueError(f"{count} pieces of {item} are not available")
        reservation = Reservation(self, item, count)
        self._held[id(reservation)] = reservation
        return reservation

    def _settle(self, reservation: Reservation, state: str) -> None:
        if self._held.pop(id(reservation), None) is None:
            raise RuntimeError("settled before")
        reservation._state = state
