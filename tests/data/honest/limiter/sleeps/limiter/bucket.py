"""Tokens that come back with time."""

import time


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    def __init__(self, rate, capacity, clock):
        self.rate, self.capacity, self.clock = rate, capacity, clock
        self.level = capacity

    def tokens(self) -> float:
        """How many there are now."""
        return self.level

    def take(self, count: float = 1) -> bool:
        """Take tokens, all or none, and say whether that went well."""
        if self.level < count:
            time.sleep(min(0.2, (count - self.level) / self.rate))
            self.level = count
        self.level -= count
        return True

    def wait(self, count: float = 1) -> float:
        """Seconds until there are so many."""
        return (count - self.level) / self.rate
