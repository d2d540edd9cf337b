"""The store."""

from collections.abc import Iterator
from contextlib import contextmanager

from kv.errors import Closed, Conflict, MissingKey

NOTHING = object()


class Store:
    """Values by key, in memory."""

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self._changes: dict[str, int] = {}

    def set(self, key: str, value: object) -> None:
        """Keep a value."""
        self._values[key] = value
        self._count(key)

    def get(self, key: str, default: object = NOTHING) -> object:
        """The value of a key, or the default if one is given."""
        if key in self._values:
            return self._values[key]
        if default is NOTHING:
            raise MissingKey(key)
        return default

    def delete(self, key: str) -> None:
        """Forget a key and its value."""
        if key not in self._values:
            raise MissingKey(key)
        del self._values[key]
        self._count(key)

    def keys(self) -> list[str]:
        """All keys, sorted."""
        return sorted(self._values)

    @contextmanager
    def transaction(self) -> Iterator["Transaction"]:
        """Changes that are applied together at the end of the block, or not at all."""
        transaction = Transaction(self)
        try:
            yield transaction
            transaction._apply()
        finally:
            transaction.abort()

    def _count(self, key: str) -> None:
        self._changes[key] = self._changes.get(key, 0) + 1


class Transaction:
    """The store with changes that nobody else sees yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = dict(store._changes)
        self._pending: dict[str, object] = {}
        self._open = True

    def set(self, key: str, value: object) -> None:
        """Keep a value."""
        self._refuse_if_closed()
        self._pending[key] = value

    def get(self, key: str, default: object = NOTHING) -> object:
        """The value of a key, or the default if one is given."""
        self._refuse_if_closed()
        if key not in self._pending:
            return self._store.get(key, default)
        if self._pending[key] is not NOTHING:
            return self._pending[key]
        if default is NOTHING:
            raise MissingKey(key)
        return default

    def delete(self, key: str) -> None:
        """Forget a key and its value."""
        self.get(key)
        self._pending[key] = NOTHING

    def keys(self) -> list[str]:
        """All keys, sorted."""
        self._refuse_if_closed()
        kept = {key for key in self._store.keys() if key not in self._pending}
        return sorted(kept | {key for key, value in self._pending.items() if value is not NOTHING})

    def abort(self) -> None:
        """End the transaction and apply nothing."""
        self._open = False

    def _refuse_if_closed(self) -> None:
        if not self._open:
            raise Closed("the transaction has ended")

    def _apply(self) -> None:
        if not self._open:
            return
        changes = self._store._changes
        if conflicts := sorted(key for key in self._pending if changes.get(key) != self._seen.get(key)):
            raise Conflict(conflicts)
        for key, value in self._pending.items():
            if value is not NOTHING:
                self._store.set(key, value)
            elif key in self._store.keys():
                self._store.delete(key)
