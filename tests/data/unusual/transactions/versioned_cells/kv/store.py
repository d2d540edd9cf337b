"""The store."""

from contextlib import ExitStack

from kv.errors import Closed, Conflict, MissingKey

NOTHING = object()


class _Cell:
    __slots__ = ("value", "version")

    def __init__(self):
        self.value, self.version = NOTHING, 0

    def write(self, value):
        self.value = value
        self.version += 1


class _Reader:
    def get(self, key, default=NOTHING):
        """The value of a key, or the default if one is given."""
        if (value := self._read(key)) is NOTHING:
            value = default
        if value is NOTHING:
            raise MissingKey(key)
        return value

    def set(self, key, value):
        """Keep a value."""
        self._write(key, value)

    def delete(self, key):
        """Forget a key and its value."""
        self.get(key)
        self._write(key, NOTHING)

    def keys(self):
        """All keys, sorted."""
        return sorted(key for key in self._names() if self._read(key) is not NOTHING)


class Store(_Reader):
    """Values by key, in memory."""

    def __init__(self):
        self._cells = {}

    def _read(self, key):
        return self._cells[key].value if key in self._cells else NOTHING

    def _write(self, key, value):
        self._cells.setdefault(key, _Cell()).write(value)

    def _names(self):
        return set(self._cells)

    def _version(self, key):
        return self._cells[key].version if key in self._cells else 0

    def transaction(self):
        """Changes that are applied together at the end of the block, or not at all."""
        return Transaction(self)


class Transaction(_Reader):
    """The store with changes that nobody else sees yet."""

    def __init__(self, store):
        self._store = store
        self._changes = {}
        self._versions = {key: store._version(key) for key in store._names()}
        self._ended = False

    def _check(self):
        if self._ended:
            raise Closed("the transaction has ended")

    def _read(self, key):
        self._check()
        return self._changes[key] if key in self._changes else self._store._read(key)

    def _write(self, key, value):
        self._check()
        self._changes[key] = value

    def _names(self):
        self._check()
        return self._store._names() | set(self._changes)

    def abort(self):
        """End the transaction and apply nothing."""
        self._ended = True

    def __enter__(self):
        return self

    def __exit__(self, kind, _error, _traceback):
        with ExitStack() as stack:
            stack.callback(self.abort)
            if kind is None and not self._ended:
                late = [k for k in self._changes if self._store._version(k) != self._versions.get(k, 0)]
                if late:
                    raise Conflict(late)
                for key, value in self._changes.items():
                    self._store._write(key, value)
        return False
