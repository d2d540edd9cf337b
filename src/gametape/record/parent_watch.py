"""A process that must not outlive the one it works for, whatever it waits for at the time."""

import os
import select
import threading

_SECONDS_TO_END = 1.0
"""For ending in order, once the other side of the connection is gone."""


def end_with_peer(connection: int) -> threading.Event:
    """End this process when nobody holds the other end of this socket any more: a moment later, so that a program that
    notices by itself can put things in order. It holds however the other process ends, SIGKILL included. A process that
    was told to end, and may take its time, sets the event."""
    watched = os.dup(connection)  # a number of its own, which stays this socket's when the caller closes it
    told = threading.Event()
    threading.Thread(target=_watch, args=(watched, told), daemon=True, name="parent-watch").start()
    return told


def _watch(connection: int, told: threading.Event) -> None:
    poll = select.poll()
    poll.register(connection, 0)  # nothing is read: only the end of the other side is told
    poll.poll()
    if not told.wait(_SECONDS_TO_END):
        os._exit(1)
