"""The store."""

from contextlib import contextmanager

from kv.errors import Closed, Conflict, MissingKey

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

    @contextmanager
    def transaction(self):
        """Changes that are applied together."""
        t = Transaction(self)
        try:
            yield t
        except BaseException:
            t.abort()
            raise
        if not t.closed:
            t.closed = True
            clash = sorted(k for k in t.new if self._values.get(k, NOTHING) != t.old.get(k, NOTHING))
            if clash:
                raise Conflict(clash)
            for key, value in t.new.items():
                if value is NOTHING:
                    self._values.pop(key, None)
                else:
                    self._values[key] = value


class Transaction:
    """The store with changes that nobody else sees yet."""

    def __init__(self, store):
        self.store, self.old, self.new, self.closed = store, dict(store._values), {}, False

    def abort(self):
        self.closed = True

    def _check(self):
        if self.closed:
            raise Closed

    def set(self, key, value):
        self._check()
        self.new[key] = value

    def get(self, key, default=NOTHING):
        self._check()
        value = {**self.store._values, **self.new}.get(key, NOTHING)
        value = default if value is NOTHING else value
        if value is NOTHING:
            raise MissingKey(key)
        return value

    def delete(self, key):
        self.get(key)
        self.new[key] = NOTHING

    def keys(self):
        self._check()
        return sorted(k for k, v in {**self.store._values, **self.new}.items() if v is not NOTHING)
