"""What lies on the shelves, and who may have it."""


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    item: str
    count: int

    @property
    def state(self) -> str:
        """`held`, `taken` or `released`."""
        raise NotImplementedError

    def take(self) -> None:
        """Let the pieces leave the warehouse."""
        raise NotImplementedError

    def release(self) -> None:
        """Let others have the pieces."""
        raise NotImplementedError


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
        """How many pieces can be reserved."""
        raise NotImplementedError

    def reserved(self, item: str) -> int:
        """How many pieces are held by reservations."""
        raise NotImplementedError

    def reserve(self, item: str, count: int) -> Reservation:
        """Hold pieces for somebody."""
        raise NotImplementedError
