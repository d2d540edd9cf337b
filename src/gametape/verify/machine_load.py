"""How busy this machine is, so that time limits on the wall clock do not fail right code for the work of others."""

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
