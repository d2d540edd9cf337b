"""What lies on the shelves, and who may have it."""


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

    def take(self) -> None:
        """Let the pieces leave the warehouse."""
        self._state = "taken"
        self._warehouse._on_hand[self.item] -= self.count

    def release(self) -> None:
        """Let others have the pieces."""
        self._state = "released"


class Warehouse:
    """Counts pieces by item."""

    def __init__(self) -> None:
        self._on_hand: dict[str, int] = {}
        self._list: list[Reservation] = []

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
        return sum(r.count for r in self._list if r.item == item and r.state == "held")

    def reserve(self, item: str, count: int) -> Reservation:
        """Hold pieces for somebody."""
        if item not in self._on_hand:
            raise KeyError(item)
        if count < 1 or count > self.available(item):
            raise ValueError
        self._list.append(Reservation(self, item, count))
        return self._list[-1]
