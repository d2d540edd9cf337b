"""A bucket for everyone."""

from collections import defaultdict

from limiter.bucket import Bucket


class Limiter:
    """Keeps a bucket for each key."""

    def __init__(self, rate, capacity, clock):
        self._buckets = defaultdict(lambda: Bucket(rate, capacity, clock))

    def __len__(self) -> int:
        return len(self._buckets)

    def allow(self, key: str) -> bool:
        """Whether the key may go on, which costs it a token."""
        return self._buckets[key].take()

    def waiting(self, keys):
        """Which of the keys have to wait, and for how many seconds."""
        return {key: wait for key in keys if (wait := self._buckets[key].wait())}

    def forget(self) -> int:
        """Drop full buckets, and say how many."""
        gone = [key for key in self._buckets if self._buckets[key].tokens() == self._buckets[key].capacity]
        for key in gone:
            self._buckets.pop(key)
        return len(gone)
