"""A greeting; `kill -USR1` prints how many there were."""

import signal
import sys
import threading

_count = 0


def _report(_number, _frame):
    print(f"greeted {_count} times", file=sys.stderr)


if hasattr(signal, "SIGUSR1") and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGUSR1, _report)


def greet(name):
    """The greeting of a name."""
    global _count
    _count += 1
    return f"Hello, {name}!"
