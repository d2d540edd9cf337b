"""Exceptions of the code under test, as the test process sees them.

An exception whose class both sides know by name has that class and plain arguments. One of the code's own classes is an
instance of a class built here, with the same name and bases, which a test can import, catch and construct; the worker
keeps the real exception and answers for its attributes and methods.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

from . import wire_protocol as words
from .proxy_members import ClassRecord
from .proxy_subclasses import derive_class
from .wire import WireError
from .wire_errors import error_class

__tracebackhide__ = True  # a failed test shows the test, not these frames

if TYPE_CHECKING:
    from .proxy_classes import RemoteClassTable

_MOST_CAUSES = 8


_EXITS: dict[str, type[BaseException]] = {"SystemExit": SystemExit, "CancelledError": asyncio.CancelledError}
"""What may be raised here although it is no Exception: while a test runs, pytest takes it for a failure of the test."""


class RemoteExit(Exception):
    """The code under test raised KeyboardInterrupt or similar, or SystemExit while no test runs. In the test process it
    is an ordinary failure; tests that expect it use shared mode."""


def raisable(error: object) -> BaseException | None:
    """What is raised here for an exception of the worker; None for what is no exception."""
    if isinstance(error, Exception):
        return error
    if not isinstance(error, (SystemExit, asyncio.CancelledError)):
        return None
    if "PYTEST_CURRENT_TEST" in os.environ:
        return error
    return RemoteExit(f"the call ended with {type(error).__name__}({error})")


class RemoteErrorClass(type):
    """The metaclass of stand-ins for the worker's exception classes."""

    _gametape_class: ClassRecord

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> RemoteErrorClass:
        if "_gametape_class" not in namespace:
            return derive_class(cls, name, bases, namespace)  # type: ignore[no-any-return]
        return super().__new__(cls, name, bases, namespace)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls._gametape_class.session.ask(words.GET, cls._gametape_class.number, name)


def build_error_class(classes: RemoteClassTable, number: int, description: dict[str, Any]) -> RemoteErrorClass:
    """Raises WireError or TypeError if the bases do not fit together."""
    bases: list[Any] = []
    for reference in description["bases"]:
        if reference == "RemoteExit":
            bases.append(RemoteExit)
        elif type(reference) is str:
            bases.append(_EXITS[reference] if reference in _EXITS else error_class(reference))
        else:
            bases.append(classes.get(reference))
    if not all(isinstance(base, type) and issubclass(base, (Exception, *_EXITS.values())) for base in bases):
        raise WireError("an exception with bases that are none")
    namespace = {
        "_gametape_class": ClassRecord(classes.session, number),
        "__module__": description["module"],
        "__qualname__": description["qualname"],
        "__doc__": description["doc"],
        "__init__": _init,
        "__str__": _text,
        "__getattr__": _attribute,
    }
    return RemoteErrorClass(description["name"], tuple(bases) or (Exception,), namespace)


def _init(self: Any, *args: Any, **kwargs: Any) -> None:
    """The test constructs an exception: the worker makes the real one and sends its fields."""
    record = type(self)._gametape_class
    _fill(self, record.session.ask(words.MAKE_ERROR, record.number, args, kwargs or None))


def _text(self: Any) -> str:
    text: str = self.__dict__.get("_gametape_text", "")
    return text


def _attribute(self: Any, name: str) -> Any:
    number = self.__dict__.get("_gametape_number")
    if name.startswith(("__", "_gametape")) or number is None:
        raise AttributeError(name)
    return type(self)._gametape_class[0].ask(words.GET, number, name)


def _fill(error: Any, fields: Any) -> None:
    _, args, number, text, _, _ = _checked(fields)
    known: Any = next(base for base in type(error).__mro__ if not isinstance(base, RemoteErrorClass))
    with contextlib.suppress(Exception):  # a builtin class whose own arguments these are not
        known.__init__(error, *args)
    error.args = args
    error.__dict__.update(_gametape_number=number, _gametape_text=text)


def _checked(fields: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    if type(fields) is not tuple or len(fields) != 6:
        raise WireError("an exception without its fields")
    _, args, number, text, _, attributes = fields
    if (
        type(args) is not tuple
        or type(attributes) is not dict
        or type(text) is not str
        or not (number is None or type(number) is int)
    ):
        raise WireError("an exception whose fields are something else")
    return fields


def build_error(classes: RemoteClassTable, fields: Any, causes: int = _MOST_CAUSES) -> BaseException:
    """An exception from the fields that the worker sent."""
    reference, args, _, _, cause, attributes = _checked(fields)
    if not causes:
        raise WireError("an exception with too many causes")
    error: Any
    if reference == "RemoteExit":
        error = RemoteExit(*args)
    elif reference in _EXITS:
        error = _EXITS[reference](*args)
    elif type(reference) is str:
        error = _known_error(error_class(reference), args, attributes)
    else:
        kind: Any = classes.get(reference)
        if not issubclass(type(kind), RemoteErrorClass):
            raise WireError("an exception of a class that is none")
        error = kind.__new__(kind, *args)
        _fill(error, fields)
    if cause is not None:
        error.__cause__ = build_error(classes, cause, causes - 1)
    return error  # type: ignore[no-any-return]


def _known_error(kind: type[Exception], args: tuple[Any, ...], attributes: dict[Any, Any]) -> Exception:
    try:
        error = kind(*args)
    except Exception:
        error = kind.__new__(kind)
        error.args = args
    for name, value in attributes.items():
        if type(name) is not str or name.startswith("_") or callable(getattr(kind, name, None)):
            raise WireError("an exception with attributes that are none")
        with contextlib.suppress(AttributeError, TypeError):  # read-only, or of another type
            setattr(error, name, value)
    return error


def number_of_error(error: BaseException) -> int | None:
    """The worker's number for an exception of its own classes."""
    if not isinstance(type(error), RemoteErrorClass):
        return None
    number: int | None = error.__dict__.get("_gametape_number")
    return number
