"""Members of the worker's classes, as they stand in the classes of the test process.

Each asks the worker when it is used. A class of a test that derives from a class of the worker may override members
and reach the original through `super()`: such a use is told from an ordinary one by the class of the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import wire_protocol as words
from .proxy_remotes import RemoteMethod, RemoteObject
from .wire_bases import DataBase

__tracebackhide__ = True  # a failed test shows the test, not these frames

if TYPE_CHECKING:
    from .proxy_session import ProxySession


class ClassRecord(NamedTuple):
    """What a class of the worker is known by in the test process."""

    session: ProxySession
    number: int
    declared: bool = False
    base: DataBase | None = None
    """The type whose data its objects have."""
    members_of_test: frozenset[str] | None = None
    """The members that a test gave the class, if a test defined it."""


def class_above(kind: Any, name: str) -> int | None:
    """The number of the class from which `super()` starts, if the class of an object is a test's own that overrides
    this member; else None, for an ordinary use."""
    last = None
    overridden = False
    for base in kind.__mro__:
        record = vars(base).get("_gametape_class")
        if record is None:
            overridden = overridden or name in vars(base)
        elif record.members_of_test is None:
            break
        else:
            last = record.number
            overridden = overridden or name in record.members_of_test
    return last if overridden else None


def special(handle: RemoteObject, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a special method of the real object."""
    above = class_above(type(handle), name)
    if above is not None:
        return _above(handle, above, name, args, kwargs)
    return handle._gametape_session.ask(words.SPECIAL, handle._gametape_number, name, args, kwargs or None)


def _above(handle: RemoteObject, above: int, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return handle._gametape_session.ask(words.SUPER, above, handle._gametape_number, name, args, kwargs or None)


class _MethodAbove:
    """A method of the worker's class, of an object whose class overrides it."""

    __slots__ = ("_above", "_handle", "_name")

    def __init__(self, handle: RemoteObject, above: int, name: str) -> None:
        self._handle, self._above, self._name = handle, above, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _above(self._handle, self._above, self._name, args, kwargs)


class MemberOfWorker:
    """A method or attribute of a class of the worker."""

    __slots__ = ("_is_method", "_name")

    def __init__(self, name: str, is_method: bool) -> None:
        self._name, self._is_method = name, is_method

    def __get__(self, handle: Any, owner: Any = None) -> Any:
        if handle is None:
            record = owner._gametape_class
            above = class_above(owner, self._name)
            if above is not None:
                return record.session.ask(words.SUPER, above, record.number, self._name, None, None)
            return record.session.ask(words.GET, record.number, self._name)
        above = class_above(type(handle), self._name)
        if above is not None and self._is_method:
            return _MethodAbove(handle, above, self._name)
        if above is not None:
            return handle._gametape_session.ask(words.SUPER, above, handle._gametape_number, self._name, None, None)
        if self._is_method:
            return RemoteMethod(handle, self._name)
        return handle._gametape_session.ask(words.GET, handle._gametape_number, self._name)


class RemoteDoc:
    """The docstring of a class, and of each of its objects, which may have their own."""

    __slots__ = ("_doc",)

    def __init__(self, doc: str | None) -> None:
        self._doc = doc

    def __get__(self, handle: Any, owner: Any = None) -> Any:
        if handle is None:
            return self._doc
        return handle._gametape_session.ask(words.GET, handle._gametape_number, "__doc__")
