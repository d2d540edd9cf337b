"""The store."""

from contextlib import contextmanager

from kv.errors import Closed, MissingKey

NOTHING = object()


class Store:
    """Values by key, in memory."""

    def __init__(self, values=None) -> None:
        self._values: dict[str, object] = dict(values or {})
        self._closed = False

    def set(self, key: str, value: object) -> None:
        """Keep a value."""
        self._check()
        self._values[key] = value

    def get(self, key: str, default: object = NOTHING) -> object:
        """The value of a key, or the default if one is given."""
        self._check()
        if key not in self._values and default is NOTHING:
            raise MissingKey(key)
        return self._values.get(key, default)

    def delete(self, key: str) -> None:
        """Forget a key and its value."""
        self.get(key)
        del self._values[key]

    def keys(self) -> list[str]:
        """All keys, sorted."""
        self._check()
        return sorted(self._values)

    def _check(self):
        if self._closed:
            raise Closed

    @contextmanager
    def transaction(self):
        """Changes that are applied together."""
        inner = Store(self._values)
        try:
            yield inner
            self._values = inner._values
        finally:
            inner._closed = True
