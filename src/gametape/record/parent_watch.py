"""A process that must not outlive the one it works for, whatever it waits for at the time."""

import os
import select
import threading
import time

_SECONDS_TO_END = 1.0
"""For ending in order, once the other side of the connection is gone."""


def end_with_peer(connection: int) -> None:
    """End this process when nobody holds the other end of this socket any more: a moment later, so that a program that
    notices by itself can put things in order. It holds however the other process ends, SIGKILL included."""
    watched = os.dup(connection)  # a number of its own, which stays this socket's when the caller closes it
    threading.Thread(target=_watch, args=(watched,), daemon=True, name="parent-watch").start()


def _watch(connection: int) -> None:
    poll = select.poll()
    poll.register(connection, 0)  # nothing is read: only the end of the other side is told
    poll.poll()
    time.sleep(_SECONDS_TO_END)
    os._exit(1)
