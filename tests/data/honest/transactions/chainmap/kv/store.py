"""The store."""

import gc
from collections import ChainMap

from kv.errors import Closed, Conflict, MissingKey

NOTHING = object()


class _Box:
    """A value and its identity: writing the same value again makes another box."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


_DELETED = _Box(None)


class _Table:
    """What stores and transactions have in common."""

    _boxes: "dict[str, _Box] | ChainMap[str, _Box]"

    def set(self, key: str, value: object) -> None:
        """Keep a value."""
        self._boxes[key] = _Box(value)

    def get(self, key: str, default: object = NOTHING) -> object:
        """The value of a key, or the default if one is given."""
        box = self._boxes.get(key, _DELETED)
        if box is not _DELETED:
            return box.value
        if default is NOTHING:
            raise MissingKey(key)
        return default

    def delete(self, key: str) -> None:
        """Forget a key and its value."""
        self.get(key)
        self._boxes[key] = _Box(None)
        self._boxes[key] = _DELETED

    def keys(self) -> list[str]:
        """All keys, sorted."""
        return sorted(key for key, box in self._boxes.items() if box is not _DELETED)


class Store(_Table):
    """Values by key, in memory."""

    def __init__(self) -> None:
        self._boxes: dict[str, _Box] = {}

    def transaction(self) -> "Transaction":
        """Changes that are applied together."""
        return Transaction(self)

    def compact(self) -> int:
        """Drop what deleted keys left; returns what the garbage collector found on the way."""
        self._boxes = {key: box for key, box in self._boxes.items() if box is not _DELETED}
        return gc.collect()


class Transaction(_Table):
    """The store with changes that nobody else sees yet."""

    def __init__(self, store: Store) -> None:
        self._base = store._boxes
        self._seen = dict(store._boxes)
        self._map: ChainMap[str, _Box] | None = ChainMap({}, store._boxes)

    @property
    def _boxes(self):
        if self._map is None:
            raise Closed("closed")
        return self._map

    def abort(self) -> None:
        """End the transaction and apply nothing."""
        self._map = None

    def __enter__(self) -> "Transaction":
        return self

    def __exit__(self, kind, value, traceback) -> None:
        changes = self._map.maps[0] if self._map is not None and kind is None else {}
        self.abort()
        conflicts = [key for key in changes if self._base.get(key) is not self._seen.get(key)]
        if conflicts:
            raise Conflict(sorted(conflicts))
        self._base.update(changes)
