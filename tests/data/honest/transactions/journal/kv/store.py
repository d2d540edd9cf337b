"""The store."""

import contextlib

from kv.errors import Closed, Conflict, MissingKey

NOTHING = object()
GONE = object()


class Store:
    """Values by key, in memory."""

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self._journal: list[str] = []

    def set(self, key: str, value: object) -> None:
        """Keep a value."""
        self._values[key] = value
        self._journal.append(key)

    def delete(self, key: str) -> None:
        """Forget a key and its value."""
        try:
            del self._values[key]
        except KeyError:
            raise MissingKey(key) from None
        self._journal.append(key)

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

    @contextlib.contextmanager
    def transaction(self):
        """Changes that are applied together at the end of the block, or not at all."""
        transaction = Transaction(self)
        with contextlib.closing(transaction):
            yield transaction
            transaction._apply()


class Transaction:
    """The store with changes that nobody else sees yet."""

    def __init__(self, store: Store) -> None:
        self._store, self._start = store, len(store._journal)
        self._overlay: dict[str, object] | None = {}

    @property
    def _changes(self) -> dict[str, object]:
        if self._overlay is None:
            raise Closed("no longer open")
        return self._overlay

    def set(self, key: str, value: object) -> None:
        """Keep a value."""
        self._changes[key] = value

    def get(self, key: str, default: object = NOTHING) -> object:
        """The value of a key, or the default if one is given."""
        match self._changes.get(key, NOTHING):
            case value if value is NOTHING:
                return self._store.get(key, default)
            case value if value is not GONE:
                return value
        if default is NOTHING:
            raise MissingKey(key)
        return default

    def delete(self, key: str) -> None:
        """Forget a key and its value."""
        self.get(key)
        self._changes[key] = GONE

    def keys(self) -> list[str]:
        """All keys, sorted."""
        merged = dict.fromkeys(self._store.keys()) | self._changes
        return sorted(key for key, value in merged.items() if value is not GONE)

    def abort(self) -> None:
        """End it."""
        self._overlay = None

    close = abort

    def _apply(self) -> None:
        if self._overlay is None:
            return
        if keys := sorted(self._overlay.keys() & set(self._store._journal[self._start :])):
            raise Conflict(keys)
        for key, value in self._overlay.items():
            if value is not GONE:
                self._store.set(key, value)
            elif key in self._store._values:
                self._store.delete(key)
