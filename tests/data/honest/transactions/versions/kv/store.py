"""The store."""

from collections import Counter

from kv.errors import Closed, Conflict, MissingKey

NOTHING = object()


class Store:
    """Values by key, in memory."""

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self._versions: Counter[str] = Counter()

    def set(self, key: str, value: object) -> None:
        """Keep a value."""
        self._values[key] = value
        self._versions[key] += 1

    def delete(self, key: str) -> None:
        """Forget a key and its value."""
        if key not in self._values:
            raise MissingKey(key)
        del self._values[key]
        self._versions[key] += 1

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

    def transaction(self) -> "Transaction":
        """Changes that are applied together."""
        return Transaction(self)


class Transaction:
    """The store with changes that nobody else sees yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._closed = False
        self._sets: dict[str, object] = {}
        self._deletes: set[str] = set()

    def __enter__(self) -> "Transaction":
        self._began = self._store._versions.copy()
        return self

    def __exit__(self, kind, error, traceback) -> bool:
        was_closed, self._closed = self._closed, True
        if kind is None and not was_closed:
            self._commit()
        return False

    def _commit(self) -> None:
        touched = self._sets.keys() | self._deletes
        conflicts = sorted(key for key in touched if self._store._versions[key] != self._began[key])
        if conflicts:
            raise Conflict(conflicts)
        for key, value in self._sets.items():
            self._store.set(key, value)
        for key in self._deletes & self._store._values.keys():
            self._store.delete(key)

    def _check(self) -> None:
        if self._closed:
            raise Closed

    def set(self, key: str, value: object) -> None:
        self._check()
        self._deletes.discard(key)
        self._sets[key] = value

    def get(self, key: str, default: object = NOTHING) -> object:
        self._check()
        if key in self._sets:
            return self._sets[key]
        if key in self._deletes:
            if default is NOTHING:
                raise MissingKey(key)
            return default
        return self._store.get(key, default)

    def delete(self, key: str) -> None:
        self.get(key)
        self._sets.pop(key, None)
        self._deletes.add(key)

    def keys(self) -> list[str]:
        self._check()
        return sorted((set(self._store.keys()) | self._sets.keys()) - self._deletes)

    def abort(self) -> None:
        self._closed = True
