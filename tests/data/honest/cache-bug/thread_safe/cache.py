"""A cache that drops what was not used for the longest time."""

import functools
import inspect
import threading
from collections.abc import Hashable


def synchronized(cls):
    """Wrap the public methods, so that two threads never meet in one cache."""

    def locked(method):
        @functools.wraps(method)
        def wrapper(self, *args, **kwargs):
            inspect.signature(method).bind(self, *args, **kwargs)  # a TypeError before the lock is taken
            with self._lock:
                return method(self, *args, **kwargs)

        return wrapper

    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if name in {"keys", "get", "peek", "put", "resize", "__len__", "__contains__"}:
            setattr(cls, name, locked(method))
    return cls


@synchronized
class Cache:
    """Holds at most `capacity` entries. Reading with `get` and writing with `put` count as use."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._lock = threading.RLock()
        self._items: dict[Hashable, object] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._items

    def keys(self) -> list[Hashable]:
        """The keys, the one that would be dropped first in front."""
        return list(self._items)

    def get(self, key: Hashable, default: object = None) -> object:
        """Read an entry and count it as used."""
        if key in self._items:
            self._items[key] = self._items.pop(key)
        return self._items.get(key, default)

    def peek(self, key: Hashable, default: object = None) -> object:
        """Read an entry without using it."""
        return self._items.get(key, default)

    def put(self, key: Hashable, value: object) -> None:
        """Write an entry; if there is no room for it, drop the one unused for the longest time."""
        self._items.pop(key, None)
        self._items[key] = value
        self._trim()

    def resize(self, capacity: int) -> None:
        """Change how many entries there is room for, and drop what does not fit."""
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._trim()

    def _trim(self) -> None:
        for key in list(self._items)[: max(0, len(self._items) - self.capacity)]:
            del self._items[key]
