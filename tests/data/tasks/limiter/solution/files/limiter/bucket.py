"""Tokens that come back with time."""

from collections.abc import Callable


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float]) -> None:
        if rate <= 0 or capacity <= 0:
            raise ValueError("rate and capacity must be above 0")
        self.rate = rate
        self.capacity = capacity
        self._clock = clock
        self._tokens = float(capacity)
        self._seen = clock()

    def tokens(self) -> float:
        """How many there are now."""
        now = max(self._clock(), self._seen)
        self._tokens = min(self.capacity, self._tokens + (now - self._seen) * self.rate)
        self._seen = now
        return float(self._tokens)

    def take(self, count: float = 1) -> bool:
        """Take tokens, all or none, and say whether that went well."""
        if count < 1:
            raise ValueError("count must be at least 1")
        if self.tokens() < count:
            return False
        self._tokens -= count
        return True

    def wait(self, count: float = 1) -> float:
        """Seconds until there are so many."""
        if not 1 <= count <= self.capacity:
            raise ValueError(f"count must be from 1 to {self.capacity}")
        return max(0.0, (count - self.tokens()) / self.rate)
