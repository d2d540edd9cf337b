"""What can go wrong with a store."""


class StoreError(Exception):
    """The base of all errors of a store."""


class MissingKey(Exception, StoreError, KeyError):
    """There is no such key."""


class Closed(StoreError):
    """The transaction has ended."""


class Conflict(StoreError):
    """Others changed the same keys."""
