"""A cache that drops what was not used for the longest time."""

from collections.abc import Hashable, Iterator


class _Link:
    __slots__ = ("after", "before", "key", "value")

    def __init__(self, key: Hashable = None, value: object = None) -> None:
        self.key, self.value = key, value
        self.before = self.after = self

    def unlink(self) -> None:
        self.before.after, self.after.before = self.after, self.before

    def link_before(self, other: "_Link") -> None:
        self.before, self.after = other.before, other
        other.before.after = other.before = self


class Cache:
    """Holds at most `capacity` entries. Reading with `get` and writing with `put` count as use."""

    def __init__(self, capacity: int) -> None:
        self._links: dict[Hashable, _Link] = {}
        self._ring = _Link()
        self.resize(capacity)

    def __len__(self) -> int:
        return len(self._links)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._links

    def __iter__(self) -> Iterator[Hashable]:
        link = self._ring.after
        while link is not self._ring:
            yield link.key
            link = link.after

    def keys(self) -> list[Hashable]:
        """The keys, the one that would be dropped first in front."""
        return [*self]

    def get(self, key: Hashable, default: object = None) -> object:
        """Read an entry and count it as used."""
        if (link := self._links.get(key)) is None:
            return default
        link.unlink()
        link.link_before(self._ring)
        return link.value

    def peek(self, key: Hashable, default: object = None) -> object:
        """Read an entry without using it."""
        return self._links[key].value if key in self._links else default

    def put(self, key: Hashable, value: object) -> None:
        """Write an entry; if there is no room for it, drop the one unused for the longest time."""
        link = self._links.setdefault(key, _Link(key))
        link.value = value
        link.unlink()
        link.link_before(self._ring)
        self._shrink()

    def resize(self, capacity: int) -> None:
        """Change how many entries there is room for, and drop what does not fit."""
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._shrink()

    def _shrink(self) -> None:
        while len(self._links) > self.capacity:
            oldest = self._ring.after
            oldest.unlink()
            del self._links[oldest.key]
