"""What lies on the shelves, and who may have it."""

class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, warehouse, item, count):
        self.item, self.count, self._warehouse, self.state = item, count, warehouse, "held"

    def take(self):
        """Let the pieces leave the warehouse."""
        self._warehouse._on_hand[self.item] -= self.count
        self._warehouse._held[self.item] -= self.count
        self.state = "taken"

    def release(self):
        """Let others have the pieces."""
        self._warehouse._held[self.item] -= self.count
        self.state = "released"


class Warehouse:
    """Counts pieces by item."""

    def __init__(self):
        self._on_hand = {}
        self._held = {}

    def add(self, item, count):
        """Put pieces on the shelf."""
        if count < 1:
            raise ValueError("count must be at least 1")
        self._on_hand[item] = self._on_hand.get(item, 0) + count

    def on_hand(self, item):
        """How many pieces are on the shelf, reserved or not."""
        return self._on_hand.get(item, 0)

    def available(self, item):
        """How many pieces can be reserved."""
        return self.on_hand(item) - self.reserved(item)

    def reserved(self, item):
        """How many pieces are held by reservations."""
        return self._held.get(item, 0)

    def reserve(self, item, count):
        """Hold pieces for somebody."""
        if item not in self._on_hand:
            raise KeyError(item)
        if not 1 <= count <= self.available(item):
            raise ValueError(count)
        self._held[item] = self._held.get(item, 0) + count
        return Reservation(self, item, count)
