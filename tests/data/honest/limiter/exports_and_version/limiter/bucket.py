"""Tokens that come back with time."""

from collections.abc import Callable


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    __slots__ = ("_clock", "_full_at", "_now", "capacity", "rate")

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float]) -> None:
        for name, value in (("rate", rate), ("capacity", capacity)):
            if value <= 0:
                raise ValueError(f"{name} must be above 0, not {value}")
        self.rate = rate
        self.capacity = capacity
        self._clock = clock
        self._now = self._full_at = clock()

    def _tick(self) -> float:
        self._now = max(self._now, self._clock())
        return self._now

    def tokens(self) -> float:
        """How many there are now."""
        missing = max(0.0, self._full_at - self._tick()) * self.rate
        return float(self.capacity - missing)

    def take(self, count: float = 1) -> bool:
        """Take tokens, all or none, and say whether that went well."""
        if count < 1:
            raise ValueError("at least 1")
        if count > self.tokens():
            return False
        self._full_at = max(self._full_at, self._now) + count / self.rate
        return True

    def wait(self, count: float = 1) -> float:
        """Seconds until there are so many."""
        if not 1 <= count <= self.capacity:
            raise ValueError(count)
        return max(0.0, self._full_at - (self.capacity - count) / self.rate - self._tick())
