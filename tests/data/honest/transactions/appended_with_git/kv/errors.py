"""What can go wrong with a store."""


class StoreError(Exception):
    """The base of all errors of a store."""


class MissingKey(StoreError, KeyError):
    """There is no such key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class Closed(StoreError):
    """The transaction has ended."""


class Conflict(StoreError):
    """Others changed the same keys."""

    def __init__(self, keys: list[str]) -> None:
        super().__init__(", ".join(keys))
        self.keys = keys
