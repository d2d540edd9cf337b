"""Keeps garbage collections short while a GPU waits for this process.

torch and what it brings are hundreds of thousands of objects, which every full collection looks at: a tenth of a second
and more, again and again, because an engine makes many objects that live long. While an engine is open, what was there
before it is left out. It is freed as before when nothing refers to it; cycles among it are found after the engine is
closed.
"""

import gc
import threading

_lock = threading.Lock()
_open = 0


def leave_out_what_is_there() -> None:
    """Until `look_at_all` has been called as often as this."""
    global _open  # noqa: PLW0603 - the collector is one for the process
    with _lock:
        _open += 1
        gc.collect()
        gc.freeze()


def look_at_all() -> None:
    global _open  # noqa: PLW0603
    with _lock:
        _open -= 1
        if not _open:
            gc.unfreeze()
