"""What can go wrong with a store."""


class StoreError(Exception):
    """The base of all errors of a store."""


class MissingKey(StoreError):
    key = None


class Closed(StoreError):
    pass


class Conflict(StoreError):
    keys = ()
