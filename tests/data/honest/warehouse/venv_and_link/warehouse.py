"""What lies on the shelves, and who may have it."""

HELD, TAKEN, RELEASED = "held", "taken", "released"


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, piles: list[int], item: str, count: int) -> None:
        self.item = item
        self.count = count
        self._piles = piles
        self._state = HELD

    @property
    def state(self) -> str:
        """`held`, `taken` or `released`."""
        return self._state

    def take(self) -> None:
        """Let the pieces leave the warehouse."""
        self._move(TAKEN, back=False)

    def release(self) -> None:
        """Let others have the pieces."""
        self._move(RELEASED, back=True)

    def _move(self, state: str, *, back: bool) -> None:
        if self._state != HELD:
            raise RuntimeError(state)
        self._state = state
        self._piles[1] -= self.count
        self._piles[0] += self.count * back


class Warehouse:
    """Counts pieces by item: one pile that is free, one that is held."""

    def __init__(self) -> None:
        self._piles: dict[str, list[int]] = {}

    def add(self, item: str, count: int) -> None:
        """Put pieces on the shelf."""
        if count < 1:
            raise ValueError("count must be at least 1")
        self._piles.setdefault(item, [0, 0])[0] += count

    def on_hand(self, item: str) -> int:
        """How many pieces are on the shelf, reserved or not."""
        return sum(self._piles.get(item, ()))

    def available(self, item: str) -> int:
        """How many pieces can be reserved."""
        return self._piles.get(item, [0, 0])[0]

    def reserved(self, item: str) -> int:
        """How many pieces are held by reservations."""
        return self._piles.get(item, [0, 0])[1]

    def reserve(self, item: str, count: int) -> Reservation:
        """Hold pieces for somebody."""
        piles = self._piles[item]
        if not 1 <= count <= piles[0]:
            raise ValueError(f"{count} of {piles[0]}")
        piles[0] -= count
        piles[1] += count
        return Reservation(piles, item, count)
