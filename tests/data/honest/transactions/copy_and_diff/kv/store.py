"""The store."""

import copy
import itertools
from contextlib import AbstractContextManager

from kv.errors import Closed, Conflict, MissingKey

NOTHING = object()
_stamps = itertools.count(1)


class Store:
    """Values by key, in memory."""

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self._stamp: dict[str, int] = {}

    def set(self, key: str, value: object) -> None:
        """Keep a value."""
        self._values[key] = value
        self._stamp[key] = next(_stamps)

    def delete(self, key: str) -> None:
        """Forget a key and its value."""
        if self._values.get(key, NOTHING) is NOTHING:
            raise MissingKey(key)
        del self._values[key]
        self._stamp[key] = next(_stamps)

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
        """Changes that are applied together at the end of the block, or not at all."""
        return Transaction(self)


def _open(method):
    def guarded(self, *args):
        if self.ended:
            raise Closed(method.__name__)
        return method(self, *args)

    return guarded


class Transaction(Store, AbstractContextManager):
    """A store that is a copy of another one until it is applied."""

    def __init__(self, origin: Store) -> None:
        self.origin = origin
        self._values = copy.copy(origin._values)
        self._stamp = dict(origin._stamp)
        self.before = dict(origin._stamp)
        self.ended = False

    set = _open(Store.set)
    get = _open(Store.get)
    delete = _open(Store.delete)
    keys = _open(Store.keys)

    def abort(self) -> None:
        """End the transaction and apply nothing."""
        self.ended = True

    def __exit__(self, kind, error, traceback):
        apply, self.ended = not self.ended and kind is None, True
        if not apply:
            return None
        changed = [key for key, stamp in self._stamp.items() if stamp != self.before.get(key)]
        lost = sorted(key for key in changed if self.origin._stamp.get(key) != self.before.get(key))
        if lost:
            raise Conflict(lost)
        for key in changed:
            if key in self._values:
                self.origin.set(key, self._values[key])
            elif key in self.origin._values:
                self.origin.delete(key)
        return None
