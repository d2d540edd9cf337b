"""Tokens that come back with time."""


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    def __init__(self, rate, capacity, clock):
        if not (rate > 0 and capacity > 0):
            raise ValueError("rate and capacity must be above 0")
        self.rate, self.capacity, self._clock = rate, capacity, clock
        self._level, self._at = float(capacity), clock()

    def tokens(self):
        """How many there are now."""
        now = self._clock()
        if now > self._at:
            self._level = min(float(self.capacity), self._level + self.rate * (now - self._at))
            self._at = now
        return self._level

    def take(self, count=1):
        """Take tokens, all or none, and say whether that went well."""
        if count < 1:
            raise ValueError("count must be at least 1")
        enough = self.tokens() >= count
        self._level -= count * enough
        return enough

    def wait(self, count=1):
        """Seconds until there are so many."""
        if count < 1 or count > self.capacity:
            raise ValueError(f"count must be between 1 and {self.capacity}")
        return max(0.0, (count - self.tokens()) / self.rate)
