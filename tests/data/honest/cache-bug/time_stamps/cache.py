"""A cache that drops what was not used for the longest time."""

import functools
import itertools
import logging
import os
from collections.abc import Hashable


class Cache:
    """Holds at most `capacity` entries. Reading with `get` and writing with `put` count as use."""

    def __init__(self, capacity: int) -> None:
        self._check(capacity)
        self.capacity = capacity
        self._values: dict[Hashable, object] = {}
        self._used: dict[Hashable, int] = {}
        self._clock = itertools.count()

    @staticmethod
    def _check(capacity: int) -> None:
        if capacity < 1:
            raise ValueError("capacity must be at least 1")

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def keys(self) -> list[Hashable]:
        """The keys, the one that would be dropped first in front."""
        return sorted(self._values, key=self._used.__getitem__)

    def get(self, key: Hashable, default: object = None) -> object:
        """Read an entry and count it as used."""
        if key in self._values:
            self._used[key] = next(self._clock)
        return self._values.get(key, default)

    def peek(self, key: Hashable, default: object = None) -> object:
        """Read an entry without using it."""
        return self._values.get(key, default)

    def put(self, key: Hashable, value: object) -> None:
        """Write an entry; if there is no room for it, drop the one unused for the longest time."""
        self._values[key] = value
        self._used[key] = next(self._clock)
        self._drop()

    def resize(self, capacity: int) -> None:
        """Change how many entries there is room for, and drop what does not fit."""
        self._check(capacity)
        self.capacity = capacity
        self._drop()

    def _drop(self) -> None:
        while len(self._values) > self.capacity:
            oldest = min(self._used, key=self._used.get)
            del self._values[oldest], self._used[oldest]


def _traced(method):
    @functools.wraps(method)
    def wrapper(self, *args, **kwargs):
        logging.getLogger("cache").debug("%s%r", method.__name__, args)
        return method(self, *args, **kwargs)

    return wrapper


if os.environ.get("CACHE_TRACE"):
    for _name in ("get", "put", "resize"):
        setattr(Cache, _name, _traced(getattr(Cache, _name)))
