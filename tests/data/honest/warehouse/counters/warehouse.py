"""What lies on the shelves, and who may have it."""

from collections import Counter


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, warehouse: "Warehouse", item: str, count: int) -> None:
        self.item = item
        self.count = count
        self._warehouse = warehouse
        self._state = "held"

    @property
    def state(self) -> str:
        """`held`, `taken` or `released`."""
        return self._state

    def _close(self, new_state: str) -> None:
        if self._state != "held":
            raise RuntimeError("already " + self._state)
        self._state = new_state
        self._warehouse._held[self.item] -= self.count

    def take(self) -> None:
        """Let the pieces leave the warehouse."""
        self._close("taken")
        self._warehouse._on_hand[self.item] -= self.count

    def release(self) -> None:
        """Let others have the pieces."""
        self._close("released")


class Warehouse:
    """Counts pieces by item."""

    def __init__(self) -> None:
        self._on_hand: Counter[str] = Counter()
        self._held: Counter[str] = Counter()

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
        return self._on_hand[item] - self._held[item]

    def reserved(self, item: str) -> int:
        """How many pieces are held by reservations."""
        return self._held[item]

    def reserve(self, item: str, count: int) -> Reservation:
        """Hold pieces for somebody."""
        if item not in self._on_hand:
            raise KeyError(item)
        if count < 1 or count > self.available(item):
            raise ValueError(count)
        self._held[item] += count
        return Reservation(self, item, count)
