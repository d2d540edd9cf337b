"""The store."""

from contextlib import contextmanager

from kv.errors import Closed, Conflict, MissingKey

NOTHING = object()


class Store:
    """Values by key, in memory."""

    def __init__(self):
        self._values = {}

    def set(self, key, value):
        """Keep a value."""
        self._values[key] = value

    def get(self, key, default=NOTHING):
        """The value of a key, or the default if one is given."""
        if key in self._values:
            return self._values[key]
        if default is NOTHING:
            raise MissingKey(key)
        return default

    def delete(self, key):
        """Forget a key and its value."""
        if key not in self._values:
            raise MissingKey(key)
        del self._values[key]

    def keys(self):
        """All keys, sorted."""
        return sorted(self._values)

    @contextmanager
    def transaction(self):
        """Changes that are applied together at the end of the block, or not at all."""
        copy = Transaction(self)
        yield copy
        copy._finish()


class Transaction(Store):
    """A copy of the store."""

    def __init__(self, store):
        self._store, self._values = store, dict(store._values)

    def abort(self):
        self._store = None

    def _finish(self):
        if self._store is not None:
            self._store._values = self._values
