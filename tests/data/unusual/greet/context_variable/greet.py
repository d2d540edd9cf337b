"""A greeting whose phrase can be changed for a while."""

import contextlib
from contextvars import ContextVar

_phrase = ContextVar("phrase", default="Hello, %s!")


@contextlib.contextmanager
def phrase(text):
    token = _phrase.set(text)
    try:
        yield
    finally:
        _phrase.reset(token)


def greet(name):
    """The greeting of a name."""
    return _phrase.get() % (name,)
