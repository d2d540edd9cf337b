"""A cache that drops what was not used for the longest time."""

from collections.abc import Hashable


class Cache:
    """Holds at most `capacity` entries. Reading with `get` and writing with `put` count as use."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._entries = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def keys(self) -> list[Hashable]:
        return list(self._entries)

    def get(self, key: Hashable, default: object = None) -> object:
        if key in self._entries:
            self.put(key, self._entries[key])
            return self._entries[key]
        return default

    peek = get

    def put(self, key: Hashable, value: object) -> None:
        self._entries.pop(key, None)
        self._entries[key] = value
        self.resize(self.capacity)

    def resize(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        while len(self._entries) > capacity:
            del self._entries[next(iter(self._entries))]
