"""The store."""

import weakref

from kv.errors import Closed, Conflict, MissingKey

NOTHING = object()


class Store:
    """Values by key, in memory. It tells open transactions which keys change."""

    def __init__(self):
        self._values = {}
        self._open = weakref.WeakSet()

    def _tell(self, key):
        for transaction in list(self._open):
            transaction._changed_outside.add(key)

    def set(self, key, value):
        """Keep a value."""
        self._values[key] = value
        self._tell(key)

    def get(self, key, default=NOTHING):
        """The value of a key, or the default if one is given."""
        value = self._values.get(key, default)
        if value is NOTHING:
            raise MissingKey(key)
        return value

    def delete(self, key):
        """Forget a key and its value."""
        self.get(key)
        del self._values[key]
        self._tell(key)

    def keys(self):
        """All keys, sorted."""
        return sorted(self._values)

    def transaction(self):
        """Changes that are applied together at the end of the block, or not at all."""
        return Transaction(self)


class Transaction:
    """The store with changes that nobody else sees yet."""

    def __init__(self, store):
        self._store = store
        self._changed_outside = set()
        self._pending = {}
        self._live = True
        store._open.add(self)

    def _alive(self):
        if not self._live:
            raise Closed("it is over")
        return self._pending

    def set(self, key, value):
        """Keep a value."""
        self._alive()[key] = value

    def get(self, key, default=NOTHING):
        """The value of a key, or the default if one is given."""
        if key not in self._alive():
            return self._store.get(key, default)
        value = default if self._pending[key] is NOTHING else self._pending[key]
        if value is NOTHING:
            raise MissingKey(key)
        return value

    def delete(self, key):
        """Forget a key and its value."""
        self.get(key)
        self._pending[key] = NOTHING

    def keys(self):
        """All keys, sorted."""
        merged = {**self._store._values, **self._alive()}
        return sorted(key for key, value in merged.items() if value is not NOTHING)

    def abort(self):
        """End the transaction and apply nothing."""
        self._live = False
        self._store._open.discard(self)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        live = self._live
        self.abort()
        if kind is not None or not live:
            return
        if late := self._changed_outside & self._pending.keys():
            raise Conflict(late)
        for key, value in self._pending.items():
            if value is not NOTHING:
                self._store.set(key, value)
            elif key in self._store._values:
                self._store.delete(key)
