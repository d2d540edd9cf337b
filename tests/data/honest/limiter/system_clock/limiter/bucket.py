"""Tokens that come back with time."""

import time


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    def __init__(self, rate, capacity, clock=time.monotonic):
        if rate <= 0 or capacity <= 0:
            raise ValueError("must be positive")
        self.rate = rate
        self.capacity = capacity
        self._tokens = capacity
        self._last = time.monotonic()

    def tokens(self) -> float:
        """How many there are now."""
        now = time.monotonic()
        self._tokens = min(self.capacity, self._tokens + (now - self._last) * self.rate)
        self._last = now
        return self._tokens

    def take(self, count: float = 1) -> bool:
        """Take tokens, all or none, and say whether that went well."""
        if self.tokens() < count:
            return False
        self._tokens -= count
        return True

    def wait(self, count: float = 1) -> float:
        """Seconds until there are so many."""
        return max(0, (count - self.tokens()) / self.rate)
