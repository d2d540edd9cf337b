"""Classes of the code under test, and handles: the objects of declared classes.

A class here is built from the worker's description of the real one: its name, its bases, and its special methods. The
worker carries out a handle's attributes, methods and special methods.

A handle equals another handle, or anything that holds a handle, if the real class says so. It equals plain data only if
the test itself took the class, or a base of it, from a module (an object of a class that is merely declared could be
returned in place of any value), if the answer is exactly True, and if the same object does not also claim to equal
values that differ (see `proxy_decoys`). The class's other operators on plain data are code under test: `handle < 3` or
`handle - 3` send the 3 to the worker, so a test of a declared class should compare its plain results. A comparison may
also give another object, as a query language does, but such an object is neither true nor false.

A handle of a class that derives from a builtin type, a named tuple say, is an object of that type too, with the data of
the real object: exactly plain data, compared and hashed by the builtin type itself unless the class overrides that. The
data of a dict, list or set follow the real object (see `wire_bases`).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from . import wire_protocol as words
from .proxy_decoys import among_decoys
from .proxy_errors import build_error_class
from .proxy_members import ClassRecord, MemberOfWorker, RemoteDoc, special
from .proxy_remotes import RemoteObject, leave, no_foreign_memory, raised_by_test
from .proxy_subclasses import derive_class
from .wire import Unsendable, WireError
from .wire_abstract import register_abstract
from .wire_bases import DATA_BASES, DataBase

__tracebackhide__ = True  # a failed test shows the test, not these frames

if TYPE_CHECKING:
    from .proxy_session import ProxySession

_T = TypeVar("_T")
_MOST_CLASSES = 2000
_TYPES: dict[str, Any] = {
    "name": str,
    "qualname": str,
    "doc": (str, type(None)),
    "module": str,
    "bases": tuple,
    "is_error": bool,
    "declared": bool,
    "special": tuple,
    "hashable": bool,
    "methods": tuple,
    "attributes": tuple,
    "base": (str, type(None)),
    "abstract": tuple,
}


class RemoteClass(type):
    """The metaclass of stand-ins for the worker's classes."""

    _gametape_class: ClassRecord

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> RemoteClass:
        if "_gametape_class" not in namespace:
            return derive_class(cls, name, bases, namespace)  # type: ignore[no-any-return]
        return super().__new__(cls, name, bases, namespace)

    def _ask(cls, operation: int, *fields: Any) -> Any:
        record = cls._gametape_class
        return record.session.ask(operation, record.number, *fields)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._ask(words.CALL, args, kwargs or None)

    def __getattr__(cls, name: str) -> Any:
        no_foreign_memory(name)
        return cls._ask(words.GET, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        if isinstance(value, MemberOfWorker):
            cls._ask(words.DELETE, name)  # which puts back what a patch replaced
        else:
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

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return self._gametape_session.ask(words.GET, self._gametape_number, "__dict__")

    def __getattr__(self, name: str) -> Any:
        no_foreign_memory(name)
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
        return _text(special(self, "__repr__"))

    def __str__(self) -> str:
        return _text(special(self, "__str__"))

    def __format__(self, specification: str) -> str:
        return _text(special(self, "__format__", specification))


def _text(value: Any) -> str:
    """A text of the worker, as plain data."""
    return str.__str__(value) if isinstance(value, RemoteObject) and isinstance(value, str) else _exact(str, value)


def _exact(kind: type[_T], value: Any) -> _T:
    if type(value) is not kind:
        raise TypeError(f"split mode: {type(value).__name__} where {kind.__name__} must come")
    return value


def _plain_method(name: str) -> Callable[..., Any]:
    def method(self: RemoteHandle, *args: Any, **kwargs: Any) -> Any:
        return special(self, name, *args, **kwargs)

    return method


def _operator(name: str) -> Callable[..., Any]:
    """A binary operator. On plain data it works only for classes that the test took from a module."""

    def method(self: RemoteHandle, other: Any, *more: Any) -> Any:
        if not isinstance(other, RemoteObject) and not self._gametape_session.stand_ins.classes.is_mentioned(
            type(self)
        ):
            return NotImplemented
        try:
            result = special(self, name, other, *more)
        except Unsendable:
            return NotImplemented
        return _compared(result) if name in words.COMPARISONS else result

    return method


def _compared(result: Any) -> Any:
    """The result of a comparison. An object of the worker has no truth value then: `assert handle == 3` would hold."""
    if isinstance(result, RemoteHandle):
        object.__setattr__(result, "_gametape_without_truth", True)
        return result
    return result if result is NotImplemented else _exact(bool, result)


def _equals(self: RemoteHandle, other: Any) -> Any:
    session = self._gametape_session
    if isinstance(other, RemoteObject):
        return _compared(special(self, "__eq__", other))
    if not session.stand_ins.classes.is_mentioned(type(self)):
        return _object_of_comparison(self, other) if session.stand_ins.classes.is_query(self) else NotImplemented
    candidates, position = ([other], 0) if session.recorded else among_decoys(other)
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
    if result is Ellipsis:
        return _object_of_comparison(self, other)
    return result if result is NotImplemented else _exact(bool, result)


def _object_of_comparison(self: RemoteHandle, other: Any) -> Any:
    compared = _compared(special(self, "__eq__", other))
    if type(compared) is bool:
        raise self._gametape_session.end(WireError("a comparison that has two results"))
    return compared


def _truth(has: frozenset[str], base: DataBase | None) -> Callable[[RemoteHandle], bool]:
    own: Any = None
    if base is not None:
        own = getattr(base.kind, "__bool__", None) or getattr(base.kind, "__len__", None)

    def truth(self: RemoteHandle) -> bool:
        if self._gametape_without_truth:
            raise TypeError("split mode: the result of a comparison that is no bool is neither true nor false")
        if "__bool__" in has:
            return _exact(bool, special(self, "__bool__"))
        if "__len__" in has:
            return _exact(int, special(self, "__len__")) != 0
        return own is None or bool(own(self))

    return truth


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
    "__repr__": RemoteHandle.__repr__,
    "__str__": RemoteHandle.__str__,
    "__format__": RemoteHandle.__format__,
}


def _members(description: dict[str, Any], base: DataBase | None, joins_base: bool) -> dict[str, Any]:
    """What a class has: the members of the real class, as far as their names are harmless, and for the data of a
    builtin type that type's own methods, except those that change an object."""
    members: dict[str, Any] = {}
    if base is not None and joins_base:
        members.update({name: getattr(base.kind, name) for name in ("__repr__", "__str__", "__format__")})
        for name in base.mutators:
            if hasattr(base.kind, name):
                members[name] = _METHODS.get(name) or MemberOfWorker(name, is_method=True)
    for kind, is_method in (("attributes", False), ("methods", True)):
        members.update(
            (name, MemberOfWorker(name, is_method))
            for name in description[kind]
            if type(name) is str and name.isidentifier() and not name.startswith(("__", "_gametape"))
        )
    has = frozenset(name for name in description["special"] if type(name) is str and name in _METHODS)
    members.update((name, _METHODS[name]) for name in has)
    members["__bool__"] = _truth(has, base)
    return members


class RemoteClassTable:
    """The worker's classes by number, each built at its first use."""

    def __init__(self, session: ProxySession, declared: frozenset[str]) -> None:
        self.session = session
        self._declared = declared
        self._by_number: dict[int, Any] = {}
        self._being_built: set[int] = set()
        self._mentioned: set[type] = set()
        self._queries: dict[type, bool] = {}

    def mention(self, value: Any) -> None:
        """Record that the test took this value from a module."""
        if isinstance(value, RemoteClass):
            self._mentioned.add(value)

    def is_mentioned(self, kind: type) -> bool:
        return any(base in self._mentioned for base in kind.__mro__)

    def is_query(self, handle: RemoteHandle) -> bool:
        """Whether comparing an object of this class gives another object, never a bool. The first answer holds for the
        class: it is asked for a fixed value, so that nothing of a test becomes known."""
        kind = type(handle)
        if kind not in self._queries:
            outcomes = self.session.ask(words.EQUALS, handle._gametape_number, (0,))
            self._queries[kind] = outcomes == [(False, Ellipsis)]
        return self._queries[kind]

    def is_declared(self, kind: RemoteClass) -> bool:
        return kind._gametape_class.declared

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

    def adopt(self, number: int, kind: Any) -> None:
        """Use this class for the worker's class of that number."""
        self._by_number[number] = kind

    def _build(self, number: int, description: Any) -> Any:
        if type(description) is not dict or not all(
            key in description and type(description[key]) in (kind if isinstance(kind, tuple) else (kind,))
            for key, kind in _TYPES.items()
        ):
            raise WireError("a class whose description is none")
        if description["is_error"]:
            return build_error_class(self, number, description)
        bases = tuple(self.get(base) for base in description["bases"])
        if any(not isinstance(base, RemoteClass) for base in bases):
            raise WireError("a class with bases that are none")
        base, joins_base = _base(description["base"], bases)
        namespace: dict[str, Any] = {
            **_members(description, base, joins_base),
            "_gametape_class": ClassRecord(self.session, number, description["declared"], base),
            "__module__": description["module"],
            "__qualname__": description["qualname"],
            "__doc__": RemoteDoc(description["doc"]),
        }
        if not description["hashable"]:
            namespace["__hash__"] = None
        elif base is not None and "__hash__" not in namespace:
            namespace["__hash__"] = base.kind.__hash__
        own_base = (base.kind,) if base is not None and joins_base else ()
        built = RemoteClass(description["name"], (*(bases or (RemoteHandle,)), *own_base), namespace)
        register_abstract(built, description["abstract"])
        return built


def _base(name: str | None, bases: tuple[Any, ...]) -> tuple[DataBase | None, bool]:
    """The type whose data the objects of a class have, and whether none of its bases has it already."""
    if name is None:
        if any(base._gametape_class.base is not None for base in bases):
            raise WireError("a class without the data of its base")
        return None, False
    if name not in DATA_BASES:
        raise WireError("a class of a base that has no data")
    base = DATA_BASES[name]
    return base, not any(issubclass(kind, base.kind) for kind in bases)
