"""What lies on the shelves, and who may have it."""

import logging

logger = logging.getLogger("warehouse")


class _Once:
    """An attribute that starts as one value and may be set one time."""

    def __init__(self, initial: str) -> None:
        self.initial = initial

    def __set_name__(self, owner: type, name: str) -> None:
        self.slot = f"_{name}_value"

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return instance.__dict__.get(self.slot, self.initial)

    def __set__(self, instance, value) -> None:
        if self.slot in instance.__dict__:
            raise RuntimeError(f"is {instance.__dict__[self.slot]} for good")
        logger.info("%r becomes %s", instance, value)
        instance.__dict__[self.slot] = value


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    state = _Once("held")

    def __init__(self, warehouse: "Warehouse", item: str, count: int) -> None:
        self.item = item
        self.count = count
        self._warehouse = warehouse

    def take(self) -> None:
        """Let the pieces leave the warehouse."""
        self.state = "taken"
        self._warehouse._on_hand[self.item] -= self.count

    def release(self) -> None:
        """Let others have the pieces."""
        self.state = "released"

    def __repr__(self) -> str:
        return f"Reservation({self.item!r}, {self.count})"


class Warehouse:
    """Counts pieces by item."""

    def __init__(self) -> None:
        self._on_hand: dict[str, int] = {}
        self._made: dict[str, list[Reservation]] = {}

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
        return sum(one.count for one in self._made.get(item, ()) if one.state == "held")

    def reserve(self, item: str, count: int) -> Reservation:
        """Hold pieces for somebody."""
        if item not in self._on_hand:
            raise KeyError(item)
        if count not in range(1, self.available(item) + 1):
            raise ValueError(f"count {count} is out of range")
        self._made.setdefault(item, []).append(one := Reservation(self, item, count))
        return one
