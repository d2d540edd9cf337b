"""Tokens that come back with time."""

import sys
from pathlib import Path

_VENDOR = str(Path(__file__).parent / "_vendor")
if _VENDOR not in sys.path:
    sys.path.insert(0, _VENDOR)

from steadyclock import SteadyClock  # noqa: E402


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    def __init__(self, rate, capacity, clock):
        if rate <= 0 or capacity <= 0:
            raise ValueError("rate and capacity must be above 0")
        self.rate, self.capacity = rate, capacity
        self._clock = SteadyClock(clock)
        self._full_at = self._clock()

    def tokens(self):
        """How many there are now."""
        missing = max(0.0, self._full_at - self._clock()) * self.rate
        return float(self.capacity - missing)

    def take(self, count=1):
        """Take tokens, all or none, and say whether that went well."""
        if count < 1:
            raise ValueError("count must be at least 1")
        if self.tokens() < count:
            return False
        self._full_at = max(self._full_at, self._clock()) + count / self.rate
        return True

    def wait(self, count=1):
        """Seconds until there are so many."""
        if count < 1 or count > self.capacity:
            raise ValueError(f"count must be from 1 to {self.capacity}")
        return max(0.0, (count - self.tokens()) / self.rate)
