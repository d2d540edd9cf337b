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
        self._values, self._before, self._store = dict(store._values), dict(store._values), store
        self._touched, self._open = set(), True

    def set(self, key, value):
        self._check()
        self._touched.add(key)
        super().set(key, value)

    def get(self, key, default=NOTHING):
        self._check()
        return super().get(key, default)

    def delete(self, key):
        self._check()
        super().delete(key)
        self._touched.add(key)

    def keys(self):
        self._check()
        return super().keys()

    def abort(self):
        self._open = False

    def _check(self):
        if not self._open:
            raise Closed("ended")

    def _finish(self):
        if self._open:
            now = self._store._values
            late = [key for key in self._touched if now.get(key, NOTHING) != self._before.get(key, NOTHING)]
            self._open = False
            if late:
                raise Conflict(late)
            for key in self._touched:
                if key in self._values:
                    now[key] = self._values[key]
                else:
                    now.pop(key, None)
