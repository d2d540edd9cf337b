"""What can go wrong with a store."""

from __future__ import annotations


class StoreError(Exception):
    """The base of all errors of a store."""


class MissingKey(StoreError, KeyError):
    """There is no such key."""

    @property
    def key(self) -> str:
        return self.args[0]

    def __str__(self) -> str:
        return f"no key {self.key!r}"


class Closed(StoreError, RuntimeError):
    """The transaction has ended."""


class Conflict(StoreError):
    """Others changed the same keys."""

    def __init__(self, keys) -> None:
        self.keys = sorted(keys)
        super().__init__(self.keys)

    def __reduce__(self):
        return type(self), (self.keys,)
