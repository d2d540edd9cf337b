"""The store."""

from kv.errors import Closed, MissingKey

NOTHING = object()


class Store:
    """Values by key, in memory."""

    def __init__(self) -> None:
        self._values: dict[str, object] = {}

    def set(self, key: str, value: object) -> None:
        """Keep a value."""
        self._values[key] = value

    def delete(self, key: str) -> None:
        """Forget a key and its value."""
        self.get(key)
        del self._values[key]

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

    def transaction(self):
        return Transaction(self)


class Transaction:
    def __init__(self, store):
        self.store, self.changes, self.open = store, dict(store._values), True

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.open = False
        if kind is None:
            self.store._values = self.changes
        return True

    def get(self, key, default=NOTHING):
        if not self.open:
            raise Closed
        return self.changes.get(key, default)

    def set(self, key, value):
        self.changes[key] = value
