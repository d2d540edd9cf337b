"""What the test process needs to know of a class of the code, to build a stand-in for it."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

from . import wire_protocol as words
from .wire_abstract import abstract_names
from .wire_bases import DATA_BASE_NAMES, data_base
from .wire_values import TYPE_NAMES

if TYPE_CHECKING:
    from .worker_objects import ObjectTable

_METHODS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)


def describe_class(objects: ObjectTable, kind: type) -> dict[str, Any]:
    """A class's names, bases and members, as plain data."""
    base = None if issubclass(kind, BaseException) else data_base(kind)
    local = base.kind.__mro__ if base else (object,)
    own = [each for each in kind.__mro__ if each not in local]
    special = {name: _lookup(own, name) for name in words.SPECIAL_METHODS}
    inherited = _lookup(list(kind.__mro__), "__hash__")
    members = {name: value for each in reversed(own) for name, value in vars(each).items()}
    return {
        "name": kind.__name__,
        "qualname": kind.__qualname__,
        "module": kind.__module__,
        "doc": kind.__doc__ if isinstance(kind.__doc__, str) else None,
        "bases": tuple(_bases(objects, kind)),
        "is_error": issubclass(kind, BaseException),
        "declared": objects.is_declared(kind),
        "special": tuple(name for name, method in special.items() if method is not Ellipsis and method is not None),
        "hashable": inherited is not None,
        "methods": tuple(sorted(name for name, value in members.items() if isinstance(value, _METHODS))),
        "attributes": tuple(sorted(name for name, value in members.items() if not isinstance(value, _METHODS))),
        "base": DATA_BASE_NAMES[base.kind] if base else None,
        "abstract": abstract_names(kind),
    }


def _bases(objects: ObjectTable, kind: type) -> list[int | str]:
    if not issubclass(kind, BaseException):
        return [objects.number(base) for base in kind.__bases__ if not is_library_class(base)]
    bases = [objects.class_reference(base) for base in kind.__bases__ if issubclass(base, Exception)]
    for base in kind.__bases__:
        if issubclass(base, BaseException) and not issubclass(base, Exception):
            bases.append("SystemExit" if issubclass(base, SystemExit) else "RemoteExit")
    return bases


def _lookup(classes: list[type], name: str) -> Any:
    return next((vars(kind)[name] for kind in classes if name in vars(kind)), Ellipsis)


def is_library_class(kind: type) -> bool:
    return kind in TYPE_NAMES or kind.__module__.partition(".")[0] in sys.stdlib_module_names
