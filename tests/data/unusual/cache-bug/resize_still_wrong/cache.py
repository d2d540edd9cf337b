"""A cache that drops what was not used for the longest time."""

from collections import OrderedDict


class Cache:
    """Holds at most `capacity` entries. Reading with `get` and writing with `put` count as use."""

    def __init__(self, capacity):
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._entries = OrderedDict()

    def __len__(self):
        return len(self._entries)

    def __contains__(self, key):
        return key in self._entries

    def keys(self):
        """The keys, the one that would be dropped first in front."""
        return list(self._entries)

    def get(self, key, default=None):
        """Read an entry and count it as used."""
        if key not in self._entries:
            return default
        self._entries.move_to_end(key)
        return self._entries[key]

    def peek(self, key, default=None):
        """Read an entry without using it."""
        return self._entries.get(key, default)

    def put(self, key, value):
        """Write an entry; if there is no room for it, drop the one unused for the longest time."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        while len(self._entries) > self.capacity:
            self._entries.popitem(last=False)

    def resize(self, capacity):
        """Change how many entries there is room for, and drop what does not fit."""
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._entries = OrderedDict(list(self._entries.items())[:capacity])
