"""What lies on the shelves, and who may have it."""

class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, warehouse, item, count):
        self.item, self.count, self._warehouse, self.state = item, count, warehouse, "held"

    def _end(self, state):
        if self.state != "held":
            raise RuntimeError(self.state)
        self.state = state
        self._warehouse._held.remove(self)

    def take(self):
        """Let the pieces leave the warehouse."""
        self._end("taken")
        self._warehouse._on_hand[self.item] -= self.count

    def release(self):
        """Let others have the pieces."""
        self._end("released")


class Warehouse:
    """Counts pieces by item."""

    def __init__(self):
        self._on_hand = {}
        self._held = []

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
        return sum(held.count for held in self._held if held.item == item)

    def reserve(self, item, count):
        """Hold pieces for somebody."""
        if not 1 <= count <= self.available(item):
            raise ValueError(f"{count} of {item} are not there")
        self._held.append(Reservation(self, item, count))
        return self._held[-1]
