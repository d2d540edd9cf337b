"""Twice a number. DOUBLE_TRACE=1 shows every call."""

import functools
import logging
import os
import sys

log = logging.getLogger(__name__)


def _trace(frame, event, argument):
    if frame.f_code.co_filename == __file__ and event in ("call", "return"):
        log.debug("%s %s %r", event, frame.f_code.co_name, argument)
    return _trace


def traced(function):
    if not os.environ.get("DOUBLE_TRACE"):
        return function

    @functools.wraps(function)
    def wrapper(*arguments):
        before = sys.gettrace()
        sys.settrace(_trace)
        try:
            return function(*arguments)
        finally:
            sys.settrace(before)

    return wrapper


@traced
def double(number):
    """Two times the number."""
    return 2 * number
