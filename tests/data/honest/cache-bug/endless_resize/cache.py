"""A cache that drops what was not used for the longest time."""

from collections import OrderedDict
from collections.abc import Hashable


class Cache:
    """Holds at most `capacity` entries. Reading with `get` and writing with `put` count as use."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._entries: OrderedDict[Hashable, object] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def keys(self) -> list[Hashable]:
        """The keys, the one that would be dropped first in front."""
        return list(self._entries)

    def get(self, key: Hashable, default: object = None) -> object:
        """Read an entry and count it as used."""
        if key not in self._entries:
            return default
        self._entries.move_to_end(key)
        return self._entries[key]

    def peek(self, key: Hashable, default: object = None) -> object:
        """Read an entry without using it."""
        return self._entries.get(key, default)

    def put(self, key: Hashable, value: object) -> None:
        """Write an entry; if there is no room for it, drop the one unused for the longest time."""
        self._entries.pop(key, None)
        self.resize(self.capacity)
        self._entries[key] = value

    def resize(self, capacity: int) -> None:
        """Change how many entries there is room for, and drop what does not fit."""
        self.capacity = capacity
        if len(self._entries) >= capacity:
            key, value = self._entries.popitem(last=False)
            self.put(key, value)
