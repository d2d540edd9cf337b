"""What can go wrong with a store."""


class StoreError(Exception):
    """The base of all errors of a store."""


class MissingKey(StoreError, KeyError):
    """There is no such key."""

    def __init__(self, key):
        super().__init__(key)
        self.key = key


class Closed(StoreError):
    """The transaction has ended."""


class Conflict(StoreError):
    """Somebody else has changed what the transaction wanted to change."""

    def __init__(self, keys):
        super().__init__(keys)
        self.keys = sorted(keys)
