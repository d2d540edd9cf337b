"""Twice a number, with a version that is worked out when it is asked for."""

import sys
import types


class _LazyModule(types.ModuleType):
    @property
    def version(self):
        return ".".join(str(part) for part in (1, 4, 2))


def double(number):
    """Two times the number."""
    return number + number


sys.modules[__name__].__class__ = _LazyModule
