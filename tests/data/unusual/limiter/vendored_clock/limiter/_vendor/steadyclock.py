"""steadyclock 0.3 - clocks that never go back. Vendored, unchanged. Public domain."""

__version__ = "0.3"


class SteadyClock:
    """Wraps a clock; a step back looks like standing still."""

    def __init__(self, clock):
        self._clock = clock
        self._latest = clock()

    def __call__(self):
        self._latest = max(self._latest, self._clock())
        return self._latest
