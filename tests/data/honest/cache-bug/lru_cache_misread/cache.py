"""A cache that drops what was not used for the longest time."""

import functools


class Cache:
    """Holds at most `capacity` entries."""

    def __init__(self, capacity):
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._values = {}
        self._lookup = functools.lru_cache(maxsize=capacity)(self._values.get)

    def __len__(self):
        return self._lookup.cache_info().currsize

    def __contains__(self, key):
        return key in self._values

    def keys(self):
        return list(self._values)

    def get(self, key, default=None):
        found = self._lookup(key)
        return default if found is None else found

    def peek(self, key, default=None):
        return self._values.get(key, default)

    def put(self, key, value):
        self._values[key] = value
        self._lookup.cache_clear()

    def resize(self, capacity):
        self.__init__(capacity)
