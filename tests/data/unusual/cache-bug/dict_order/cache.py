"""A cache that drops what was not used for the longest time."""

_MISSING = type("_Missing", (), {"__repr__": lambda self: "<missing>"})()


class Cache:
    """Holds at most `capacity` entries. Reading with `get` and writing with `put` count as use."""

    def __init__(self, capacity):
        self._entries = {}
        self.resize(capacity)

    def __len__(self):
        return len(self._entries)

    def __contains__(self, key):
        return key in self._entries

    def keys(self):
        """The keys, the one that would be dropped first in front."""
        return [*self._entries]

    def get(self, key, default=None):
        """Read an entry and count it as used."""
        value = self._entries.pop(key, _MISSING)
        if value is _MISSING:
            return default
        self._entries[key] = value
        return value

    def peek(self, key, default=None):
        """Read an entry without using it."""
        return self._entries.get(key, default)

    def put(self, key, value):
        """Write an entry; if there is no room for it, drop the one unused for the longest time."""
        self._entries.pop(key, None)
        self._entries[key] = value
        self.resize(self.capacity)

    def resize(self, capacity):
        """Change how many entries there is room for, and drop what does not fit."""
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        for key in self.keys()[: max(0, len(self) - capacity)]:
            del self._entries[key]
