"""What lies on the shelves, and who may have it."""

import enum
from dataclasses import dataclass
from itertools import count as numbers


class Kind(enum.Enum):
    ADDED = "added"
    HELD = "held"
    TAKEN = "taken"
    RELEASED = "released"


@dataclass(frozen=True)
class Event:
    kind: Kind
    item: str
    count: int
    number: int = 0


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, log, event):
        self._log, self._event = log, event

    item = property(lambda self: self._event.item)
    count = property(lambda self: self._event.count)

    @property
    def state(self):
        """`held`, `taken` or `released`."""
        mine = [event for event in self._log if event.number == self._event.number]
        return mine[-1].kind.value

    def _end(self, kind):
        if self.state != Kind.HELD.value:
            raise RuntimeError(f"it is {self.state}")
        self._log.append(Event(kind, self.item, self.count, self._event.number))

    def take(self):
        """Let the pieces leave the warehouse."""
        self._end(Kind.TAKEN)

    def release(self):
        """Let others have the pieces."""
        self._end(Kind.RELEASED)


class Warehouse:
    """Counts pieces by item."""

    def __init__(self):
        self._log = []
        self._numbers = numbers(1)

    def _sum(self, item, **weights):
        return sum(
            event.count * weights.get(event.kind.value, 0) for event in self._log if event.item == item
        )

    def add(self, item, count):
        """Put pieces on the shelf."""
        if count < 1:
            raise ValueError("count must be at least 1")
        self._log.append(Event(Kind.ADDED, item, count))

    def on_hand(self, item):
        """How many pieces are on the shelf, reserved or not."""
        return self._sum(item, added=1, taken=-1)

    def available(self, item):
        """How many pieces can be reserved."""
        return self._sum(item, added=1, held=-1, released=1)

    def reserved(self, item):
        """How many pieces are held by reservations."""
        return self._sum(item, held=1, taken=-1, released=-1)

    def reserve(self, item, count):
        """Hold pieces for somebody."""
        if not any(event.item == item for event in self._log):
            raise KeyError(item)
        if not 0 < count <= self.available(item):
            raise ValueError(f"{count} is not between 1 and {self.available(item)}")
        event = Event(Kind.HELD, item, count, next(self._numbers))
        self._log.append(event)
        return Reservation(self._log, event)
