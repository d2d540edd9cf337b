"""The store."""

import contextlib

from kv.errors import Closed, Conflict, MissingKey

NOTHING = object()


class Store:
    """Values by key, in memory. The journal says which key changed when."""

    def __init__(self):
        self._values = {}
        self._journal = []

    def set(self, key, value):
        """Keep a value."""
        self._journal.append(key)
        self._values[key] = value

    def get(self, key, default=NOTHING):
        """The value of a key, or the default if one is given."""
        try:
            return self._values[key]
        except KeyError:
            if default is NOTHING:
                raise MissingKey(key) from None
            return default

    def delete(self, key):
        """Forget a key and its value."""
        self.get(key)
        self._journal.append(key)
        del self._values[key]

    def keys(self):
        """All keys, sorted."""
        return sorted(self._values)

    @contextlib.contextmanager
    def transaction(self):
        """Changes that are applied together at the end of the block, or not at all."""
        transaction = Transaction(self)
        try:
            yield transaction
            object.__getattribute__(transaction, "_commit")()
        finally:
            transaction.abort()


class Transaction(Store):
    """The store with changes that nobody else sees yet."""

    def __init__(self, store):
        self._open = True
        self._store = store
        self._start = len(store._journal)
        super().__init__()
        self._gone = set()

    def __getattribute__(self, name):
        if name in ("set", "get", "delete", "keys") and not object.__getattribute__(self, "_open"):
            raise Closed(f"{name} after the end")
        return object.__getattribute__(self, name)

    def set(self, key, value):
        """Keep a value."""
        self._gone.discard(key)
        self._values[key] = value

    def get(self, key, default=NOTHING):
        """The value of a key, or the default if one is given."""
        if key in self._values:
            return self._values[key]
        if key in self._gone:
            if default is NOTHING:
                raise MissingKey(key)
            return default
        return self._store.get(key, default)

    def delete(self, key):
        """Forget a key and its value."""
        self.get(key)
        self._values.pop(key, None)
        self._gone.add(key)

    def keys(self):
        """All keys, sorted."""
        return sorted((set(self._store.keys()) | set(self._values)) - self._gone)

    def abort(self):
        """End the transaction and apply nothing."""
        self._open = False

    def _commit(self):
        if not self._open:
            return
        late = set(self._store._journal[self._start :]) & (set(self._values) | self._gone)
        if late:
            raise Conflict(late)
        for key in self._gone:
            with contextlib.suppress(MissingKey):
                self._store.delete(key)
        for key, value in self._values.items():
            self._store.set(key, value)
