"""A bucket for everyone."""

from limiter.bucket import Bucket


class Limiter:
    """Keeps a bucket for each key."""

    def __init__(self, rate, capacity, clock):
        self.args = rate, capacity, clock
        self.all = {}

    def __len__(self) -> int:
        return len(self.all)

    def allow(self, key: str) -> bool:
        """Whether the key may go on, which costs it a token."""
        if key not in self.all:
            self.all[key] = Bucket(*self.args)
        return self.all[key].take()

    def waiting(self, keys):
        """Which of the keys have to wait, and for how many seconds."""
        return {key: self.all[key].wait() for key in keys if key in self.all and self.all[key].wait() > 0}

    def forget(self) -> int:
        """Drop full buckets, and say how many."""
        skipped = 0
        for key in self.all:
            if self.all[key].tokens() == self.all[key].capacity:
                del self.all[key]
                skipped += 1
        return skipped
