"""What lies on the shelves, and who may have it."""


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, warehouse, item, count):
        self.item, self.count, self._warehouse, self._state = item, count, warehouse, "held"

    @property
    def state(self) -> str:
        """`held`, `taken` or `released`."""
        return self._state

    def take(self) -> None:
        """Let the pieces leave the warehouse."""
        self._end("taken")
        self._warehouse._on_hand[self.item] -= self.count

    def release(self) -> None:
        """Let others have the pieces."""
        self._end("released")

    def _end(self, state):
        if self._state != "held":
            raise RuntimeError
        self._warehouse._held[self.item] -= self.count
        self._state = state


class Warehouse:
    """Counts pieces by item."""

    def __init__(self) -> None:
        self._on_hand: dict[str, int] = {}
        self._held: dict[str, int] = {}

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
        return self._held.get(item, 0)

    def reserve(self, item: str, count: int) -> Reservation:
        """Hold pieces for somebody."""
        if item not in self._on_hand:
            raise KeyError(item)
        if count < 1 or count >= self.available(item):
            raise ValueError
        self._held[item] = self.reserved(item) + count
        return Reservation(self, item, count)
