"""What lies on the shelves, and who may have it."""


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def take(self) -> None:
        pass

    def release(self) -> None:
        pass


class Warehouse:
    """Counts pieces by item."""

    def __init__(self) -> None:
        self._on_hand: dict[str, int] = {}

    def add(self, item: str, count: int) -> None:
        """Put pieces on the shelf."""
        if count < 1:
            raise ValueError("count must be at least 1")
        self._on_hand[item] = self._on_hand.get(item, 0) + count

    def on_hand(self, item: str) -> int:
        """How many pieces are on the shelf, reserved or not."""
        return self._on_hand.get(item, 0)

    def available(self, item: str) -> int:
        pass

    def reserved(self, item: str) -> int:
        pass

    def reserve(self, item: str, count: int) -> Reservation:
        pass
