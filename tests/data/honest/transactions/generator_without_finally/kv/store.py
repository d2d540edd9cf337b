"""The store."""

from contextlib import contextmanager

from kv.errors import Closed, Conflict, MissingKey

NOTHING = object()


class Store:
    """Values by key, in memory."""

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self._log: list[str] = []

    def set(self, key: str, value: object) -> None:
        """Keep a value."""
        self._values[key] = value
        self._log.append(key)

    def delete(self, key: str) -> None:
        """Forget a key and its value."""
        self.get(key)
        del self._values[key]
        self._log.append(key)

    def get(self, key: str, default: object = NOTHING) -> object:
        """The value of a key, or the default if one is given."""
        if key in self._values:
            return self._values[key]
        if default is NOTHING:
            raise MissingKey(key)
        return default

    def keys(self) -> list[str]:
        """All keys, sorted."""
        return sorted(self._values)

    @contextmanager
    def transaction(self):
        """Changes that are applied together."""
        t = Transaction(self)
        yield t
        t.finish()


class Transaction:
    def __init__(self, store):
        self.store, self.start, self.changes, self.done = store, len(store._log), {}, False

    def check(self):
        if self.done:
            raise Closed("done")

    def set(self, key, value):
        self.check()
        self.changes[key] = value

    def get(self, key, default=NOTHING):
        self.check()
        return self.changes[key] if key in self.changes else self.store.get(key, default)

    def delete(self, key):
        self.check()
        self.changes.pop(key, None)

    def keys(self):
        self.check()
        return sorted({*self.store.keys(), *self.changes})

    def abort(self):
        self.check()
        self.done = True

    def finish(self):
        self.check()
        self.done = True
        if late := sorted(set(self.changes) & set(self.store._log[self.start :])):
            raise Conflict(late)
        for key, value in self.changes.items():
            self.store.set(key, value)
