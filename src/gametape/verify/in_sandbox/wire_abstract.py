"""Abstract base classes of the standard library that a class of one side may be an instance of on the other."""

from __future__ import annotations

import collections.abc
import contextlib
import io
import numbers
import os
from typing import Any

_CLASSES: tuple[Any, ...] = (
    *(getattr(collections.abc, name) for name in collections.abc.__all__),
    numbers.Number,
    numbers.Complex,
    numbers.Real,
    numbers.Rational,
    numbers.Integral,
    io.IOBase,
    io.RawIOBase,
    io.BufferedIOBase,
    io.TextIOBase,
    os.PathLike,
    contextlib.AbstractContextManager,
    contextlib.AbstractAsyncContextManager,
)
_BY_NAME = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _CLASSES}


def abstract_names(kind: type) -> tuple[str, ...]:
    """The names of the abstract classes that a class belongs to."""
    found = []
    for name, abstract in _BY_NAME.items():
        try:
            if issubclass(kind, abstract):
                found.append(name)
        except TypeError:
            continue
    return tuple(found)


def register_abstract(kind: type, names: tuple[Any, ...]) -> None:
    """Make a class a virtual subclass of those of these abstract classes that there are."""
    for name in names:
        abstract = _BY_NAME.get(name) if type(name) is str else None
        if abstract is not None and not issubclass(kind, abstract):
            abstract.register(kind)
