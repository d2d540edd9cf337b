"""Tokens that come back with time."""

from collections.abc import Callable


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float]) -> None:
        raise NotImplementedError

    def tokens(self) -> float:
        """How many there are now."""
        raise NotImplementedError

    def take(self, count: float = 1) -> bool:
        """Take tokens, all or none, and say whether that went well."""
        raise NotImplementedError

    def wait(self, count: float = 1) -> float:
        """Seconds until there are so many."""
        raise NotImplementedError
