"""A greeting that gets ready when it is needed first."""

import sys


def _prepare():
    import string

    allowed = string.printable
    return lambda name: "Hello, {}!".format(name) if allowed else ""


def greet(name):
    """The greeting of a name."""
    module = sys.modules[__name__]
    module.greet = _prepare()
    return module.greet(name)
