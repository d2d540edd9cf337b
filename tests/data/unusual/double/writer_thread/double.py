"""Doubling, with a history that a thread of its own writes."""

import atexit
import queue
import threading

HISTORY = []
_waiting = queue.Queue()


def _write():
    while True:
        entry = _waiting.get()
        if entry is None:
            return
        HISTORY.append(entry)
        del HISTORY[:-100]


_writer = threading.Thread(target=_write, name="history", daemon=True)
_writer.start()


@atexit.register
def _finish():
    _waiting.put(None)
    _writer.join(timeout=1)


def double(number):
    """Two times the number."""
    result = number * 2
    _waiting.put((number, result))
    return result
