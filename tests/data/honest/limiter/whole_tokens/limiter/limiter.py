"""A bucket for everyone."""

from collections.abc import Callable, Iterable

from limiter.bucket import Bucket


class Limiter:
    """Keeps a bucket for each key."""

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float]) -> None:
        Bucket(rate, capacity, clock)
        self._settings = (rate, capacity, clock)
        self._buckets: dict[str, Bucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def allow(self, key: str) -> bool:
        """Whether the key may go on, which costs it a token."""
        if key not in self._buckets:
            self._buckets[key] = Bucket(*self._settings)
        return self._buckets[key].take()

    def waiting(self, keys: Iterable[str]) -> dict[str, float]:
        """Which of the keys have to wait, and for how many seconds."""
        found = {}
        for key in keys:
            if key in self._buckets and (seconds := self._buckets[key].wait()):
                found[key] = seconds
        return found

    def forget(self) -> int:
        """Drop full buckets, and say how many."""
        full = [key for key, bucket in self._buckets.items() if bucket.tokens() >= bucket.capacity]
        for key in full:
            del self._buckets[key]
        return len(full)
