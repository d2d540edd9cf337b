"""Changes that nobody else sees yet."""

from kv.errors import Closed, Conflict, MissingKey

_UNSET = object()


class Transaction:
    """The store with changes that nobody else sees yet."""

    __slots__ = ("_after", "_began", "_open", "_store")

    def __init__(self, store) -> None:
        self._store = store
        self._after = {}
        self._began = store.revision
        self._open = True

    def __getattribute__(self, name):
        """Every public method but `abort` is refused once the transaction is over."""
        if not name.startswith("_") and name != "abort" and not object.__getattribute__(self, "_open"):
            raise Closed(name)
        return object.__getattribute__(self, name)

    def set(self, key, value):
        self._after[key] = (True, value)

    def get(self, key, default=_UNSET):
        there, value = self._after.get(key) or self._store.look(key)
        if there:
            return value
        if default is _UNSET:
            raise MissingKey(key)
        return default

    def delete(self, key):
        self.get(key)
        self._after[key] = (False, None)

    def keys(self):
        here = {key for key, (there, _) in self._after.items() if there}
        return sorted(here | {key for key in self._store.keys() if key not in self._after})

    def abort(self):
        self._open = False

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self._open and kind is None:
            self._open = False
            self._store.apply(self._after, self._began)
        self._open = False
