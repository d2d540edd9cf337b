"""A bucket for everyone."""

from limiter.bucket import Bucket


class Limiter:
    """Keeps a bucket for each key."""

    def __init__(self, rate, capacity, clock, buckets={}):
        self.make = lambda: Bucket(rate, capacity, clock)
        self.buckets = buckets

    def __len__(self) -> int:
        return len(self.buckets)

    def allow(self, key: str) -> bool:
        """Whether the key may go on, which costs it a token."""
        return self.buckets.setdefault(key, self.make()).take()

    def waiting(self, keys):
        """Which of the keys have to wait, and for how many seconds."""
        return {key: self.buckets[key].wait() for key in keys if key in self.buckets}

    def forget(self) -> int:
        """Drop full buckets, and say how many."""
        full = [key for key, bucket in self.buckets.items() if bucket.tokens() == bucket.capacity]
        for key in full:
            del self.buckets[key]
        return len(full)
