"""A bucket for everyone."""

from collections.abc import Callable, Iterable

from limiter.bucket import Bucket


class Limiter:
    """Keeps a bucket for each key."""

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float]) -> None:
        self._new_bucket = lambda: Bucket(rate, capacity, clock)
        self._new_bucket()  # refuses what makes no sense now, not when the first key comes
        self._buckets: dict[str, Bucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def allow(self, key: str) -> bool:
        """Whether the key may go on, which costs it a token."""
        if key not in self._buckets:
            self._buckets[key] = self._new_bucket()
        return self._buckets[key].take()

    def waiting(self, keys: Iterable[str]) -> dict[str, float]:
        """Which of the keys have to wait, and for how many seconds."""
        waits = {key: self._buckets[key].wait() for key in keys if key in self._buckets}
        return {key: seconds for key, seconds in waits.items() if seconds > 0}

    def forget(self) -> int:
        """Drop full buckets, and say how many."""
        before = len(self._buckets)
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if bucket.tokens() < bucket.capacity}
        return before - len(self._buckets)
