"""A bucket for everyone."""

from limiter.buckets import TokenBucket


class Limiter:
    """Keeps a bucket for each key."""

    def __init__(self, rate, capacity, clock):
        self.bucket = TokenBucket(rate, capacity, clock)
