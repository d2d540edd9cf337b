"""Tokens that come back with time."""

import math


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    def __init__(self, rate, capacity, clock):
        if rate <= 0 or capacity <= 0:
            raise ValueError
        self.rate, self.capacity, self.clock = rate, capacity, clock
        self.level, self.last = capacity, clock()

    def tokens(self) -> float:
        """How many there are now."""
        seconds = math.floor(self.clock() - self.last)
        if seconds > 0:
            self.level = min(self.capacity, self.level + seconds * self.rate)
            self.last += seconds
        return float(self.level)

    def take(self, count: float = 1) -> bool:
        """Take tokens, all or none, and say whether that went well."""
        if self.tokens() < count:
            return False
        self.level -= count
        return True

    def wait(self, count: float = 1) -> float:
        """Seconds until there are so many."""
        if count > self.capacity:
            raise ValueError
        return float(max(0, math.ceil((count - self.tokens()) / self.rate)))
