"""What lies on the shelves, and who may have it."""


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, warehouse, item, count):
        self.warehouse = warehouse
        self.item = item
        self.count = count
        self.state = "held"

    def take(self) -> None:
        """Let the pieces leave the warehouse."""
        if self.state != "held":
            raise RuntimeError
        self.warehouse._on_hand[self.item] -= self.count
        self.warehouse._reserved[self.item] -= self.count
        self.state = "taken"

    def release(self) -> None:
        """Let others have the pieces."""
        if self.state != "held":
            raise RuntimeError
        self.state = "released"


class Warehouse:
    """Counts pieces by item."""

    def __init__(self) -> None:
        self._on_hand: dict[str, int] = {}
        self._reserved: dict[str, int] = {}

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
            raise ValueError
        self._reserved[item] = self.reserved(item) + count
        return Reservation(self, item, count)
