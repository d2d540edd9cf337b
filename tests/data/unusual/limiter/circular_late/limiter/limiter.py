"""A bucket for everyone."""

from limiter.bucket import Bucket


class Limiter:
    """Keeps a bucket for each key."""

    def __init__(self, rate, capacity, clock):
        self._settings = rate, capacity, clock
        Bucket(*self._settings)
        self._buckets = {}

    def __len__(self):
        return len(self._buckets)

    def allow(self, key):
        """Whether the key may go on, which costs it a token."""
        return self._buckets.setdefault(key, Bucket(*self._settings)).take()

    def waiting(self, keys):
        """Which of the keys have to wait, and for how many seconds."""
        return {key: wait for key in keys if key in self._buckets and (wait := self._buckets[key].wait())}

    def forget(self):
        """Drop full buckets, and say how many."""
        full = [key for key, bucket in self._buckets.items() if bucket.tokens() >= bucket.capacity]
        for key in full:
            del self._buckets[key]
        return len(full)
