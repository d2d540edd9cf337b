"""The worker's objects that the test process refers to by number, and descriptions of their classes."""

from __future__ import annotations

import sys
import types
from typing import Any

from . import wire_protocol as words
from .wire_errors import error_name
from .wire_values import TYPE_NAMES


class ObjectTable:
    """Objects by number, with a count of references that the other side has not released."""

    def __init__(self) -> None:
        self.declared: frozenset[str] = frozenset()
        self._by_number: dict[int, list[Any]] = {}
        self._numbers: dict[int, int] = {}
        self._last = 0
        self._known_declared: set[type] = set()

    def __getitem__(self, number: int) -> Any:
        return self._by_number[number][0]

    def number(self, value: Any) -> int:
        """The number of an object, with one more reference to it."""
        number = self._numbers.get(id(value))
        if number is None:
            self._last = number = self._last + 1
            self._numbers[id(value)] = number
            self._by_number[number] = [value, 0]
        self._by_number[number][1] += 1
        return number

    def release(self, number: int, count: int) -> None:
        entry = self._by_number.get(number)
        if entry is None:
            return
        entry[1] -= count
        if entry[1] <= 0:
            del self._by_number[number]
            del self._numbers[id(entry[0])]

    def is_declared(self, kind: type) -> bool:
        """Whether the class or one of its bases stays on this side."""
        if kind in self._known_declared:
            return True
        if any(self._declared_class(key) in kind.__mro__ for key in self.declared):
            self._known_declared.add(kind)
            return True
        return False

    def _declared_class(self, key: str) -> Any:
        module, _, path = key.partition(":")
        declared: Any = sys.modules.get(module)
        for name in path.split("."):
            declared = getattr(declared, name, None)
        return declared

    def class_reference(self, kind: type) -> int | str:
        return error_name(kind) or self.number(kind)

    def describe(self, kind: type) -> dict[str, Any]:
        """What the test process needs to build a stand-in for this class."""
        own = [base for base in kind.__mro__ if base is not object]
        special = {name: _lookup(own, name) for name in words.SPECIAL_METHODS}
        if issubclass(kind, BaseException):
            bases = [self.class_reference(base) for base in kind.__bases__ if issubclass(base, Exception)]
            if any(not issubclass(base, Exception) for base in kind.__bases__ if issubclass(base, BaseException)):
                bases.append("RemoteExit")
        else:
            bases = [self.number(base) for base in kind.__bases__ if not _is_library_class(base)]
        return {
            "name": kind.__name__,
            "qualname": kind.__qualname__,
            "module": kind.__module__,
            "doc": kind.__doc__ if isinstance(kind.__doc__, str) else None,
            "bases": tuple(bases),
            "is_error": issubclass(kind, BaseException),
            "declared": self.is_declared(kind),
            "special": tuple(name for name, method in special.items() if method is not Ellipsis and method is not None),
            "hashable": special["__hash__"] is not None,
            "methods": tuple(
                sorted(
                    {
                        name
                        for base in own
                        if not _is_library_class(base)
                        for name, value in vars(base).items()
                        if isinstance(value, types.FunctionType)
                    }
                )
            ),
        }


def _lookup(classes: list[type], name: str) -> Any:
    return next((vars(kind)[name] for kind in classes if name in vars(kind)), Ellipsis)


def _is_library_class(kind: type) -> bool:
    return kind in TYPE_NAMES or kind.__module__.partition(".")[0] in sys.stdlib_module_names
