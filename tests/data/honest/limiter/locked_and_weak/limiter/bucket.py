"""Tokens that come back with time."""

import threading
import weakref
from collections.abc import Callable

_alive: "weakref.WeakSet[Bucket]" = weakref.WeakSet()


def alive() -> int:
    """How many buckets there are in this process; for a status page."""
    return len(_alive)


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float]) -> None:
        if min(rate, capacity) <= 0:
            raise ValueError("rate and capacity must be above 0")
        self.rate = rate
        self.capacity = capacity
        self._clock = clock
        self._lock = threading.Lock()
        self._time = clock()
        self._tokens = float(capacity)
        _alive.add(self)

    def _update(self) -> float:
        assert self._lock.locked()
        now = self._clock()
        if now > self._time:
            self._tokens = min(self.capacity, self._tokens + self.rate * (now - self._time))
            self._time = now
        return float(self._tokens)

    def tokens(self) -> float:
        """How many there are now."""
        with self._lock:
            return self._update()

    def take(self, count: float = 1) -> bool:
        """Take tokens, all or none, and say whether that went well."""
        if count < 1:
            raise ValueError("count")
        with self._lock:
            if self._update() < count:
                return False
            self._tokens -= count
            return True

    def wait(self, count: float = 1) -> float:
        """Seconds until there are so many."""
        if count < 1 or count > self.capacity:
            raise ValueError("count")
        with self._lock:
            return max(0.0, count - self._update()) / self.rate
