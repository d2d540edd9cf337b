"""A cache that drops what was not used for the longest time."""

_PREVIOUS, _NEXT, _KEY, _VALUE = range(4)


class Cache:
    """Holds at most `capacity` entries. Reading with `get` and writing with `put` count as use."""

    def __init__(self, capacity):
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._links = {}
        self._root = root = []
        root[:] = [root, root, None, None]

    def __len__(self):
        return len(self._links)

    def __contains__(self, key):
        return key in self._links

    def keys(self):
        """The keys, the one that would be dropped first in front."""
        keys, link = [], self._root[_NEXT]
        while link is not self._root:
            keys.append(link[_KEY])
            link = link[_NEXT]
        return keys

    def _unlink(self, link):
        before, after = link[_PREVIOUS], link[_NEXT]
        before[_NEXT], after[_PREVIOUS] = after, before

    def _append(self, link):
        last = self._root[_PREVIOUS]
        link[_PREVIOUS], link[_NEXT] = last, self._root
        last[_NEXT] = self._root[_PREVIOUS] = link

    def get(self, key, default=None):
        """Read an entry and count it as used."""
        if (link := self._links.get(key)) is None:
            return default
        self._unlink(link)
        self._append(link)
        return link[_VALUE]

    def peek(self, key, default=None):
        """Read an entry without using it."""
        return self._links[key][_VALUE] if key in self._links else default

    def put(self, key, value):
        """Write an entry; if there is no room for it, drop the one unused for the longest time."""
        if link := self._links.get(key):
            self._unlink(link)
        else:
            link = self._links[key] = [None, None, key, None]
        link[_VALUE] = value
        self._append(link)
        self._trim()

    def resize(self, capacity):
        """Change how many entries there is room for, and drop what does not fit."""
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._trim()

    def _trim(self):
        while len(self._links) > self.capacity:
            oldest = self._root[_NEXT]
            self._unlink(oldest)
            del self._links[oldest[_KEY]]
