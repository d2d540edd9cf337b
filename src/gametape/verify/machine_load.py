"""How busy this machine is, so that time limits on the wall clock do not fail right code for the work of others."""

import math
import os
from pathlib import Path

_MOST = 8.0
_LOAD = Path("/proc/loadavg")


def slowdown() -> float:
    """By how much longer than on an idle machine a process may take now: from 1 up to 8.

    It is the number of processes that want to run for each core, now or on average over the last minute.
    """
    try:
        average, _, _, running = _LOAD.read_text().split()[:4]
        wanted = max(float(average), float(running.partition("/")[0]))
    except (OSError, ValueError):
        return 1.0
    return min(_MOST, max(1.0, wanted / len(os.sched_getaffinity(0))))


class LoadAllowance:
    """How much longer than on an idle machine some processes may take. What hangs uses it up: a hang may wait `most`
    seconds, in all, for the work of others, and after that no longer than on an idle machine."""

    def __init__(self, most: float = math.inf) -> None:
        self._left = most

    def lengthen(self, seconds: float) -> float:
        """A limit that holds on an idle machine, as it holds now."""
        return seconds + min(self._left, seconds * (slowdown() - 1.0))

    def spend(self, seconds: float) -> None:
        """Say that a process hung for so long beyond its limit on an idle machine."""
        self._left = max(0.0, self._left - seconds)
