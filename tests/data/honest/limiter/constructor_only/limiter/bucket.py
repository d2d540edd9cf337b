"""Tokens that come back with time."""


class Bucket:
    """Holds up to `capacity` tokens and gains `rate` of them a second."""

    def __init__(self, rate, capacity, clock):
        self.rate = rate
        self.capacity = capacity
        self.clock = clock
