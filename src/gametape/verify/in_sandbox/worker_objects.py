"""The worker's objects that the test process refers to by number, and descriptions of their classes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from .wire import WireError
from .wire_errors import error_name
from .worker_descriptions import describe_class

_REQUEST_BITS = 20


class Unbound(WireError):
    """A request names an object that is not there."""

    def __init__(self, number: int) -> None:
        super().__init__("unbound")
        self.number = number


class ObjectTable:
    """Objects by number, with a count of references that the other side has not released.

    The k-th object that a request exposes for the first time gets the number `(request << 20) | k`. So code that
    behaves alike gets the same numbers, and an object more or less changes no number of another request.
    """

    def __init__(self) -> None:
        self.declared: frozenset[str] = frozenset()
        self.modules: frozenset[str] = frozenset()
        self._by_number: dict[int, list[Any]] = {}
        self._numbers: dict[int, int] = {}
        self._next = 0
        self._trial = False
        self._known_declared: set[type] = set()

    def __getitem__(self, number: int) -> Any:
        try:
            return self._by_number[number][0]
        except KeyError:
            raise Unbound(number) from None

    def __contains__(self, number: object) -> bool:
        return number in self._by_number

    @property
    def is_trial(self) -> bool:
        return self._trial

    @contextlib.contextmanager
    def during(self, request: int) -> Iterator[None]:
        """Number the objects that this request exposes."""
        outer, self._next = self._next, request << _REQUEST_BITS
        try:
            yield
        finally:
            self._next = outer

    @contextlib.contextmanager
    def trial(self) -> Iterator[None]:
        """Number nothing: what is encoded now is not sent."""
        outer, self._trial = self._trial, True
        try:
            yield
        finally:
            self._trial = outer

    def number(self, value: Any) -> int:
        """The number of an object, with one more reference to it."""
        if self._trial:
            return 0
        number = self._numbers.get(id(value))
        if number is None:
            number, self._next = self._next, self._next + 1
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
        """Whether objects of the class stay on this side: the task declares it or one of its bases, or it is none that
        a task could declare, since it belongs to no served module or was defined in a function."""
        if kind in self._known_declared:
            return True
        if not self.could_be_declared(kind) or any(self._declared_class(key) in kind.__mro__ for key in self.declared):
            self._known_declared.add(kind)
            return True
        return False

    def could_be_declared(self, kind: type) -> bool:
        return kind.__module__ in self.modules and "<locals>" not in kind.__qualname__

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
        return describe_class(self, kind)
