"""A cache that drops what was not used for the longest time."""

from collections import OrderedDict
from collections.abc import MutableMapping


class _Recent(MutableMapping):
    """A mapping in order of use. Reading moves; `items` does not."""

    __slots__ = ("_order",)

    def __init__(self):
        self._order = OrderedDict()

    def __getitem__(self, key):
        self._order.move_to_end(key)
        return self._order[key]

    def __setitem__(self, key, value):
        self._order[key] = value
        self._order.move_to_end(key)

    def __delitem__(self, key):
        del self._order[key]

    def __iter__(self):
        return iter(self._order)

    def __len__(self):
        return len(self._order)

    def __contains__(self, key):
        return key in self._order

    def look(self, key, default):
        return self._order.get(key, default)

    def shrink(self, size):
        while len(self) > size:
            del self[next(iter(self))]
        assert len(self) <= size, "the cache did not shrink"


class Cache:
    """Holds at most `capacity` entries. Reading with `get` and writing with `put` count as use."""

    __slots__ = ("__weakref__", "_recent", "capacity")

    def __init__(self, capacity):
        self._recent = _Recent()
        self.resize(capacity)

    def __len__(self):
        return len(self._recent)

    def __contains__(self, key):
        return key in self._recent

    def keys(self):
        """The keys, the one that would be dropped first in front."""
        return list(self._recent)

    def get(self, key, default=None):
        """Read an entry and count it as used."""
        return self._recent[key] if key in self._recent else default

    def peek(self, key, default=None):
        """Read an entry without using it."""
        return self._recent.look(key, default)

    def put(self, key, value):
        """Write an entry; if there is no room for it, drop the one unused for the longest time."""
        self._recent[key] = value
        self._recent.shrink(self.capacity)

    def resize(self, capacity):
        """Change how many entries there is room for, and drop what does not fit."""
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._recent.shrink(capacity)
