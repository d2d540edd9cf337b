"""Tokens that come back with time."""

from fractions import Fraction

from limiter.checks import Above, at_least_one


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second. Fractions, so that nothing is lost."""

    rate = Above(0)
    capacity = Above(0)

    def __init__(self, rate, capacity, clock):
        self.rate = rate
        self.capacity = capacity
        self._clock = clock
        self._last = Fraction(clock())
        self._tokens = Fraction(capacity)

    def _refill(self):
        now = Fraction(self._clock())
        if now > self._last:
            self._tokens = min(Fraction(self.capacity), self._tokens + (now - self._last) * Fraction(self.rate))
            self._last = now
        return self._tokens

    def tokens(self) -> float:
        """How many there are now."""
        return float(self._refill())

    @at_least_one
    def take(self, count=1) -> bool:
        """Take tokens, all or none, and say whether that went well."""
        if self._refill() < count:
            return False
        self._tokens -= Fraction(count)
        return True

    @at_least_one
    def wait(self, count=1) -> float:
        """Seconds until there are so many."""
        if count > self.capacity:
            raise ValueError("more than fits")
        return float(max(Fraction(0), (count - self._refill()) / Fraction(self.rate)))
