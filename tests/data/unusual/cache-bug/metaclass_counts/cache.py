"""A cache that drops what was not used for the longest time."""

import functools
import itertools


def use(method):
    method.is_use = True
    return method


class CountsUses(type):
    def __new__(mcs, name, bases, namespace):
        for key, value in list(namespace.items()):
            if getattr(value, "is_use", False):
                namespace[key] = mcs.wrapped(value)
        return super().__new__(mcs, name, bases, namespace)

    @staticmethod
    def wrapped(method):
        @functools.wraps(method)
        def wrapper(self, key, *rest, **named):
            result = method(self, key, *rest, **named)
            if key in self._values:
                self._used[key] = next(self._ticks)
            self._shrink()
            return result

        return wrapper


class Cache(metaclass=CountsUses):
    """Holds at most `capacity` entries. Reading with `get` and writing with `put` count as use."""

    def __init__(self, capacity):
        self._values, self._used, self._ticks = {}, {}, itertools.count()
        self.resize(capacity)

    def __len__(self):
        return len(self._values)

    def __contains__(self, key):
        return key in self._values

    def keys(self):
        """The keys, the one that would be dropped first in front."""
        return sorted(self._values, key=lambda key: self._used.get(key, float("inf")))

    @use
    def get(self, key, default=None):
        """Read an entry and count it as used."""
        return self._values.get(key, default)

    def peek(self, key, default=None):
        """Read an entry without using it."""
        return self._values.get(key, default)

    @use
    def put(self, key, value):
        """Write an entry; if there is no room for it, drop the one unused for the longest time."""
        self._values[key] = value

    def resize(self, capacity):
        """Change how many entries there is room for, and drop what does not fit."""
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._shrink()

    def _shrink(self):
        for key in self.keys()[: max(0, len(self._values) - self.capacity)]:
            del self._values[key]
            self._used.pop(key, None)
