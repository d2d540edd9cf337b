"""A bucket for everyone."""

import functools
from collections.abc import Callable, Iterable

from limiter.bucket import Bucket


class _Buckets(dict):
    """Makes a bucket when a key is first seen."""

    def __init__(self, make: Callable[[], Bucket]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, key: str) -> Bucket:
        self[key] = bucket = self.make()
        return bucket


class Limiter:
    """Keeps a bucket for each key."""

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float]) -> None:
        make = functools.partial(Bucket, rate, capacity, clock)
        make()
        self._buckets = _Buckets(make)

    def __len__(self) -> int:
        return len(self._buckets)

    def allow(self, key: str) -> bool:
        """Whether the key may go on, which costs it a token."""
        return self._buckets[key].take()

    def waiting(self, keys: Iterable[str]) -> dict[str, float]:
        """Which of the keys have to wait, and for how many seconds."""
        known = (key for key in keys if key in self._buckets)
        waits = ((key, self._buckets[key].wait()) for key in known)
        return dict(filter(lambda pair: pair[1] > 0, waits))

    def forget(self) -> int:
        """Drop full buckets, and say how many."""
        before = len(self)
        for key in [*self._buckets]:
            if self._buckets[key].tokens() == self._buckets[key].capacity:
                self._buckets.pop(key)
        return before - len(self)
