"""The store."""

from kv.errors import MissingKey

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
        if key not in self._values:
            raise MissingKey(key)
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
        """Not yet."""
        raise NotImplementedError
