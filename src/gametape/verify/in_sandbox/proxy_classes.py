"""Classes of the code under test, and handles: the objects of declared classes.

A class here is built from the worker's description of the real one: its name, its bases, and its special methods. The
worker carries out a handle's attributes, methods and special methods.

A handle equals another handle, or anything that holds a handle, if the real class says so. It equals plain data only if
the test itself took the class, or a base of it, from a module (an object of a class that is merely declared could be
returned in place of any value), if the answer is exactly True, and if the same object does not also claim to equal
values that differ (see `proxy_decoys`). The class's other operators on plain data are code under test: `handle < 3` or
`handle - 3` send the 3 to the worker, so a test of a declared class should compare its plain results.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from . import wire_protocol as words
from .proxy_decoys import among_decoys
from .proxy_errors import build_error_class
from .proxy_remotes import RemoteMethod, RemoteObject, leave, no_foreign_memory, raised_by_test
from .wire import Unsendable, WireError

__tracebackhide__ = True  # a failed test shows the test, not these frames

if TYPE_CHECKING:
    from .proxy_session import ProxySession

_T = TypeVar("_T")
_MOST_CLASSES = 2000
_TYPES = {
    "name": str,
    "qualname": str,
    "module": str,
    "bases": tuple,
    "is_error": bool,
    "declared": bool,
    "special": tuple,
    "hashable": bool,
    "methods": tuple,
}


class RemoteClass(type):
    """The metaclass of stand-ins for the worker's classes."""

    _gametape_class: tuple[ProxySession, int, frozenset[str], bool]

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> RemoteClass:
        if "_gametape_class" not in namespace:
            raise TypeError(f"split mode: a test cannot derive from {bases[0].__name__}; such tests use shared mode")
        return super().__new__(cls, name, bases, namespace)

    def _ask(cls, operation: int, *fields: Any) -> Any:
        session, number, *_ = cls._gametape_class
        return session.ask(operation, number, *fields)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._ask(words.CALL, args, kwargs or None)

    def __getattr__(cls, name: str) -> Any:
        no_foreign_memory(name)
        return cls._ask(words.GET, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        cls._ask(words.SET, name, value)

    def __delattr__(cls, name: str) -> None:
        cls._ask(words.DELETE, name)

    def __getitem__(cls, key: Any) -> Any:
        return cls._ask(words.OF_CLASS, "getitem", (key,))

    def __iter__(cls) -> Iterator[Any]:
        return iter(cls._ask(words.OF_CLASS, "iter", ()))

    def __len__(cls) -> int:
        return int(cls._ask(words.OF_CLASS, "len", ()))

    def __contains__(cls, item: Any) -> bool:
        return cls._ask(words.OF_CLASS, "contains", (item,)) is True

    def __bool__(cls) -> bool:
        return True

    def __dir__(cls) -> list[str]:
        return list(cls._ask(words.OF_CLASS, "dir", ()))


class RemoteHandle(RemoteObject):
    """An object of a declared class."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        no_foreign_memory(name)
        if name in type(self)._gametape_class[2]:  # type: ignore[attr-defined]
            return RemoteMethod(self, name)
        return self._gametape_session.ask(words.GET, self._gametape_number, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._gametape_session.ask(words.SET, self._gametape_number, name, value)

    def __delattr__(self, name: str) -> None:
        self._gametape_session.ask(words.DELETE, self._gametape_number, name)

    def __dir__(self) -> list[str]:
        return list(self._gametape_session.ask(words.OF_CLASS, self._gametape_number, "dir", ()))

    def __copy__(self) -> Any:
        return self._gametape_session.ask(words.COPY, self._gametape_number, False)

    def __deepcopy__(self, _: Any) -> Any:
        return self._gametape_session.ask(words.COPY, self._gametape_number, True)

    def __repr__(self) -> str:
        return _exact(str, _special(self, "__repr__"))

    def __str__(self) -> str:
        return _exact(str, _special(self, "__str__"))

    def __format__(self, specification: str) -> str:
        return _exact(str, _special(self, "__format__", specification))


def _special(handle: RemoteHandle, name: str, *args: Any, **kwargs: Any) -> Any:
    return handle._gametape_session.ask(words.SPECIAL, handle._gametape_number, name, args, kwargs or None)


def _exact(kind: type[_T], value: Any) -> _T:
    if type(value) is not kind:
        raise TypeError(f"split mode: {type(value).__name__} where {kind.__name__} must come")
    return value


def _plain_method(name: str) -> Callable[..., Any]:
    def method(self: RemoteHandle, *args: Any, **kwargs: Any) -> Any:
        return _special(self, name, *args, **kwargs)

    return method


def _operator(name: str) -> Callable[..., Any]:
    """A binary operator. On plain data it works only for classes that the test took from a module."""

    def method(self: RemoteHandle, other: Any, *more: Any) -> Any:
        if not isinstance(other, RemoteObject) and not self._gametape_session.stand_ins.classes.is_mentioned(
            type(self)
        ):
            return NotImplemented
        try:
            result = _special(self, name, other, *more)
        except Unsendable:
            return NotImplemented
        if name in words.COMPARISONS and result is not NotImplemented:
            return _exact(bool, result)
        return result

    return method


def _equals(self: RemoteHandle, other: Any) -> Any:
    session = self._gametape_session
    if isinstance(other, RemoteObject):
        result = _special(self, "__eq__", other)
        return result if result is NotImplemented else _exact(bool, result)
    if not session.stand_ins.classes.is_mentioned(type(self)):
        return NotImplemented
    candidates, position = among_decoys(other)
    try:
        outcomes = session.ask(words.EQUALS, self._gametape_number, tuple(candidates))
    except Unsendable:
        return NotImplemented
    if type(outcomes) is not list or len(outcomes) != len(candidates) or not all(map(_is_outcome, outcomes)):
        raise session.end(WireError("an answer that is no comparison"))
    raised, result = outcomes.pop(position)
    if raised:
        raise result
    if result is True and any(decoy == (False, True) for decoy in outcomes):
        raise TypeError(
            f"split mode: an object of {type(self).__name__} claims to equal values that differ from each other"
        )
    return result if result is NotImplemented else _exact(bool, result)


def _is_outcome(outcome: Any) -> bool:
    if type(outcome) is not tuple or len(outcome) != 2:
        return False
    raised, value = outcome
    return isinstance(value, Exception) if raised is True else raised is False


def _exit(self: RemoteHandle, _: Any, error: BaseException | None, traceback: types.TracebackType | None) -> bool:
    return leave(self, error, traceback)


async def _aexit(
    self: RemoteHandle, _: Any, error: BaseException | None, traceback: types.TracebackType | None
) -> bool:
    suppressed = await self._gametape_session.ask(words.EXIT, self._gametape_number, "__aexit__", error)
    return suppressed is True and raised_by_test(error, traceback)


_METHODS: dict[str, Callable[..., Any]] = {
    **{name: _plain_method(name) for name in words.SPECIAL_METHODS},
    **{name: _operator(name) for name in (*words.BINARY, *words.COMPARISONS)},
    "__eq__": _equals,
    "__exit__": _exit,
    "__aexit__": _aexit,
}
for _name in ("__repr__", "__str__", "__format__"):
    del _METHODS[_name]


class RemoteClassTable:
    """The worker's classes by number, each built at its first use."""

    def __init__(self, session: ProxySession, declared: frozenset[str]) -> None:
        self.session = session
        self._declared = declared
        self._by_number: dict[int, Any] = {}
        self._being_built: set[int] = set()
        self._mentioned: set[type] = set()

    def mention(self, value: Any) -> None:
        """Record that the test took this value from a module."""
        if isinstance(value, RemoteClass):
            self._mentioned.add(value)

    def is_mentioned(self, kind: type) -> bool:
        return any(base in self._mentioned for base in kind.__mro__)

    def is_declared(self, kind: RemoteClass) -> bool:
        return bool(self._declared) and kind._gametape_class[3]

    def get(self, number: Any) -> Any:
        if number in self._by_number:
            return self._by_number[number]
        if type(number) is not int or number in self._being_built or len(self._by_number) >= _MOST_CLASSES:
            raise WireError("a class that cannot be")
        self._being_built.add(number)
        try:
            built = self._by_number[number] = self._build(number, self.session.ask(words.DESCRIBE, number))
        finally:
            self._being_built.discard(number)
        return built

    def _build(self, number: int, description: Any) -> Any:
        if type(description) is not dict or any(type(description.get(key)) is not kind for key, kind in _TYPES.items()):
            raise WireError("a class whose description is none")
        if "doc" not in description or type(description["doc"]) not in (str, type(None)):
            raise WireError("a class whose description is none")
        if description["is_error"]:
            return build_error_class(self, number, description)
        bases = tuple(self.get(base) for base in description["bases"])
        if any(not isinstance(base, RemoteClass) for base in bases):
            raise WireError("a class with bases that are none")
        methods = frozenset(name for name in description["methods"] if type(name) is str)
        namespace: dict[str, Any] = {
            "__slots__": (),
            "_gametape_class": (self.session, number, methods, description["declared"]),
            "__module__": description["module"],
            "__qualname__": description["qualname"],
            "__doc__": description["doc"],
            **{name: _METHODS[name] for name in description["special"] if name in _METHODS},
        }
        if not description["hashable"]:
            namespace["__hash__"] = None
        return RemoteClass(description["name"], bases or (RemoteHandle,), namespace)
