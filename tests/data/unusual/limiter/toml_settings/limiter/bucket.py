"""Tokens that come back with time. Bounds and messages are in bounds.toml."""

import tomllib
from importlib import resources

_BOUNDS = tomllib.loads(resources.files(__package__).joinpath("bounds.toml").read_text(encoding="utf-8"))


def _check(name, value):
    bound = _BOUNDS[name]
    if value < bound["least"] or (bound["above"] and value == bound["least"]):
        raise ValueError(bound["message"])
    return value


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    def __init__(self, rate, capacity, clock):
        self.rate, self.capacity = _check("rate", rate), _check("capacity", capacity)
        self._clock = clock
        self._tokens, self._seen = float(capacity), clock()

    def tokens(self):
        """How many there are now."""
        now = max(self._seen, self._clock())
        self._tokens = min(float(self.capacity), self._tokens + (now - self._seen) * self.rate)
        self._seen = now
        return self._tokens

    def take(self, count=1):
        """Take tokens, all or none, and say whether that went well."""
        if self.tokens() < _check("count", count):
            return False
        self._tokens -= count
        return True

    def wait(self, count=1):
        """Seconds until there are so many."""
        if _check("count", count) > self.capacity:
            raise ValueError(_BOUNDS["count"]["too_many"])
        return max(0.0, count - self.tokens()) / self.rate
