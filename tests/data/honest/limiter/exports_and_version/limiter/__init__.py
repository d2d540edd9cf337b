"""Limit how often something happens."""

import importlib

__version__ = "1.1"
__all__ = ["Bucket", "Limiter", "parse_rate"]
_HOMES = {"Bucket": "limiter.bucket", "Limiter": "limiter.limiter", "parse_rate": "limiter.rate"}


def __getattr__(name):
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(name)


def __dir__():
    return sorted([*globals(), *__all__])
