"""What lies on the shelves, and who may have it."""

class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, item, count, state, take, release):
        self.item, self.count = item, count
        self._state = state
        self.take, self.release = take, release

    state = property(lambda self: self._state())


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
        if count < 1 or count > self.available(item):
            raise ValueError(f"not possible: {count}")
        self._held[item] = self.reserved(item) + count
        state = "held"

        def end(new, leaving):
            def method():
                nonlocal state
                if state != "held":
                    raise RuntimeError(f"already {state}")
                state = new
                self._held[item] -= count
                self._on_hand[item] -= leaving

            return method

        return Reservation(item, count, lambda: state, end("taken", count), end("released", 0))
