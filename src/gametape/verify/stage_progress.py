"""How far long work on a task is."""

import threading
from collections.abc import Callable

StageProgress = Callable[[str, int, int], None]
"""Called at the beginning of a stage and while it goes on: what is being done, how many pieces are done, and how many
there are, or 0 where nobody counts."""


def ignore_progress(stage: str, done: int, total: int) -> None:
    """For those who only wait for the result."""


class StageCounter:
    """Counts the pieces of one stage, from any thread."""

    def __init__(self, on_progress: StageProgress, stage: str, total: int) -> None:
        self._on_progress = on_progress
        self._stage = stage
        self._total = total
        self._done = 0
        self._lock = threading.Lock()
        on_progress(stage, 0, total)

    def count(self) -> None:
        """One more is done."""
        with self._lock:
            self._done += 1
            self._on_progress(self._stage, self._done, max(self._done, self._total))
