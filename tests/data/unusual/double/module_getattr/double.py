"""Twice a number. Old names still work, with a warning."""

import warnings

_OLD_NAMES = {"twice": "double", "times_two": "double"}


def __getattr__(name):
    if name in _OLD_NAMES:
        warnings.warn(f"{name} is called {_OLD_NAMES[name]} now", DeprecationWarning, stacklevel=2)
        return globals()[_OLD_NAMES[name]]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def double(number):
    """Two times the number."""
    return number * 2
