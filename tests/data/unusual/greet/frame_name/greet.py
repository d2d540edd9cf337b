"""A greeting; the debug log says who asked for it."""

import logging
import sys

log = logging.getLogger("greet")


def _caller():
    frame = sys._getframe(2)
    return f"{frame.f_code.co_name}:{frame.f_lineno}"


def greet(name):
    """The greeting of a name."""
    if log.isEnabledFor(logging.DEBUG):
        log.debug("greeting %s for %s", name, _caller())
    return "Hello, " + name + "!"
