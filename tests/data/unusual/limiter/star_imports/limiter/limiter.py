"""A bucket for everyone."""

from limiter.compat import *  # noqa: F403


class Limiter(dict):
    """Keeps a bucket for each key: a dictionary that fills itself."""

    def __init__(self, rate, capacity, clock):
        super().__init__()
        self._make = partial(Bucket, rate, capacity, clock)  # noqa: F405
        self._make()

    def __missing__(self, key):
        self[key] = bucket = self._make()
        return bucket

    def allow(self, key):
        """Whether the key may go on, which costs it a token."""
        return self[key].take()

    def waiting(self, keys):
        """Which of the keys have to wait, and for how many seconds."""
        waits = {key: self[key].wait() for key in keys if key in self}
        return {key: seconds for key, seconds in waits.items() if seconds}

    def forget(self):
        """Drop full buckets, and say how many."""
        full = [key for key in self if self[key].tokens() == self[key].capacity]
        return len([self.pop(key) for key in full])
