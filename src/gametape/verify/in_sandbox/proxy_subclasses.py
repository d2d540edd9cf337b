"""Classes that a test derives from classes of the code under test.

The worker builds a class of the same name from the real bases. Its functions call the test's functions back, with the
object itself as a handle; its other members are data. In the test process the class has the test's functions as its
own, so that a handle's methods run where they were written, and `super()` leads to the worker.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from . import wire_protocol as words
from .proxy_members import ClassRecord
from .wire import WireError

__tracebackhide__ = True  # a failed test shows the test, not these frames

_NAMES_OF_CLASS = """
    __module__ __qualname__ __doc__ __classcell__ __dict__ __weakref__ __annotations__ __firstlineno__
    __static_attributes__ __orig_bases__ __parameters__ __annotate__ __annotate_func__
"""
_NAMES_OF_HANDLE = """
    __getattr__ __getattribute__ __setattr__ __delattr__ __del__ __new__ __slots__ __reduce__
    __reduce_ex__ __copy__ __deepcopy__ __dir__ __init_subclass__ __class_getitem__
"""
_OF_THE_CLASS = frozenset(_NAMES_OF_CLASS.split())
_OF_THE_HANDLE = frozenset(_NAMES_OF_HANDLE.split())
"""Members by which a handle reaches the worker: the test's own ones are called there."""
_IMPLIED = {"__new__": "static", "__init_subclass__": "class", "__class_getitem__": "class"}


class FunctionOfClass:
    """A function of a test's class. The worker can call it for objects of that class only."""

    def __init__(self, function: Callable[..., Any], of: list[type], bound: str) -> None:
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", "method")
        self.__doc__ = function.__doc__
        self._of, self._bound = of, bound

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        (kind,) = self._of
        fits: Callable[[Any], bool] = {
            "object": lambda first: isinstance(first, kind),
            "class": lambda first: isinstance(first, type) and issubclass(first, kind),
            "none": lambda _: True,
        }[self._bound]
        if self._bound != "none" and not (args and fits(args[0])):
            raise WireError(f"{self.__name__} of something that is no {kind.__name__}")
        return self.__wrapped__(*args, **kwargs)


def send_members(namespace: dict[str, Any], of: list[type]) -> dict[str, tuple[str, Any]]:
    """The members of a test's class as the worker is told of them: how each is bound, and its functions or data."""
    return {name: _member(name, value, of) for name, value in namespace.items() if name not in _OF_THE_CLASS}


def _member(name: str, value: Any, of: list[type]) -> tuple[str, Any]:
    if isinstance(value, types.FunctionType):
        bound = _IMPLIED.get(name, "function")
        return bound, FunctionOfClass(value, of, "object" if bound == "function" else "class")
    if isinstance(value, staticmethod):
        return "static", FunctionOfClass(value.__func__, of, "none")
    if isinstance(value, classmethod):
        return "class", FunctionOfClass(value.__func__, of, "class")
    if isinstance(value, property):
        parts = (value.fget, value.fset, value.fdel)
        return "property", tuple(None if part is None else FunctionOfClass(part, of, "object") for part in parts)
    return "data", value


def _is_local(name: str, value: Any) -> bool:
    """Whether a member stays in the test process: functions do; data are the real class's and object's."""
    if name in _OF_THE_CLASS:
        return True
    return name not in _OF_THE_HANDLE and isinstance(value, (types.FunctionType, staticmethod, classmethod, property))


def derive_class(metaclass: Any, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
    """The class of a test that derives from classes of the worker."""
    remote = [base._gametape_class for base in bases if hasattr(base, "_gametape_class")]
    session = remote[0].session
    own = dict(namespace)
    for mixin in _mixins(bases):
        own = {**vars(mixin), **own}
    of: list[type] = []
    numbers = tuple(record.number for record in remote)
    number = session.ask(words.SUBCLASS, name, numbers, send_members(own, of))
    if type(number) is not int:
        raise session.end(WireError("a class without its number"))
    inherited = next((record.base for record in remote if getattr(record, "base", None) is not None), None)
    record = ClassRecord(session, number, True, inherited, frozenset(own) - _OF_THE_CLASS)
    local = {key: value for key, value in namespace.items() if _is_local(key, value)}
    built = type.__new__(metaclass, name, bases, {**local, "_gametape_class": record})
    of.append(built)
    session.stand_ins.classes.adopt(number, built)
    return built


def _mixins(bases: tuple[type, ...]) -> Iterator[type]:
    """The classes of the test among the bases."""
    for base in bases:
        for kind in base.__mro__:
            own_module = kind.__module__.startswith(f"{__package__}.")
            library = kind.__module__.partition(".")[0] in sys.stdlib_module_names
            if not (own_module or library or hasattr(kind, "_gametape_class")):
                yield kind
