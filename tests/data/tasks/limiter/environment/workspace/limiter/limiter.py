"""A bucket for everyone."""

from collections.abc import Callable, Iterable


class Limiter:
    """Keeps a bucket for each key."""

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float]) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def allow(self, key: str) -> bool:
        """Whether the key may go on, which costs it a token."""
        raise NotImplementedError

    def waiting(self, keys: Iterable[str]) -> dict[str, float]:
        """Which of the keys have to wait, and for how many seconds."""
        raise NotImplementedError

    def forget(self) -> int:
        """Drop full buckets, and say how many."""
        raise NotImplementedError
