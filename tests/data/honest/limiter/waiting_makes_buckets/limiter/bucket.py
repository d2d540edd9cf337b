"""Tokens that come back with time."""

from collections.abc import Callable


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float]) -> None:
        if not (rate > 0 and capacity > 0):
            raise ValueError("rate and capacity must be positive")
        self.rate, self.capacity, self.clock = rate, capacity, clock
        self._level = float(capacity)
        self._latest = clock()

    def tokens(self) -> float:
        """How many there are now."""
        elapsed = max(0.0, self.clock() - self._latest)
        self._latest += elapsed
        self._level = min(float(self.capacity), self._level + elapsed * self.rate)
        return self._level

    def take(self, count: float = 1) -> bool:
        """Take tokens, all or none, and say whether that went well."""
        if count < 1:
            raise ValueError("count must be at least 1")
        enough = self.tokens() >= count
        if enough:
            self._level -= count
        return enough

    def wait(self, count: float = 1) -> float:
        """Seconds until there are so many."""
        if count < 1 or count > self.capacity:
            raise ValueError(f"{count} tokens never fit")
        missing = count - self.tokens()
        return missing / self.rate if missing > 0 else 0.0
