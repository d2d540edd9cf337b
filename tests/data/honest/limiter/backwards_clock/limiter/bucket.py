"""Tokens that come back with time."""


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    def __init__(self, rate, capacity, clock):
        if rate <= 0 or capacity <= 0:
            raise ValueError
        self.rate, self.capacity, self.clock = rate, capacity, clock
        self.level, self.last = float(capacity), clock()

    def tokens(self) -> float:
        """How many there are now."""
        now = self.clock()
        self.level = min(self.capacity, self.level + (now - self.last) * self.rate)
        self.last = now
        return float(self.level)

    def take(self, count: float = 1) -> bool:
        """Take tokens, all or none, and say whether that went well."""
        if count < 1:
            raise ValueError
        if self.tokens() >= count:
            self.level -= count
            return True
        return False

    def wait(self, count: float = 1) -> float:
        """Seconds until there are so many."""
        if not 1 <= count <= self.capacity:
            raise ValueError
        return max(0.0, (count - self.tokens()) / self.rate)
