"""The store."""

import threading

from kv.errors import Conflict, MissingKey
from kv.transaction import Transaction

NOTHING = object()


class Store:
    """Values by key, in memory."""

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self._changed: dict[str, int] = {}
        self._lock = threading.RLock()
        self.revision = 0

    def _touch(self, key: str) -> None:
        self.revision += 1
        self._changed[key] = self.revision

    def look(self, key: str) -> tuple[bool, object]:
        return (key in self._values, self._values.get(key))

    def set(self, key: str, value: object) -> None:
        """Keep a value."""
        with self._lock:
            self._values[key] = value
            self._touch(key)

    def delete(self, key: str) -> None:
        """Forget a key and its value."""
        with self._lock:
            if self._values.pop(key, NOTHING) is NOTHING:
                raise MissingKey(key)
            self._touch(key)

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

    def apply(self, after: dict, began: int) -> None:
        with self._lock:
            if late := [key for key in after if self._changed.get(key, 0) > began]:
                raise Conflict(late)
            for key, (there, value) in after.items():
                if there:
                    self.set(key, value)
                elif key in self._values:
                    self.delete(key)

    def transaction(self) -> Transaction:
        """Changes that are applied together at the end of the block, or not at all."""
        return Transaction(self)
