"""Stand-ins in the worker for objects and classes of the test. Each use of one is a callback."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

from .wire_abstract import register_abstract
from .wire_bases import DATA_BASES, DataBase, elements, same_elements

CallBack = Callable[[int, tuple[Any, ...], dict[str, Any]], Any]


class ClassOfTest(type):
    """The metaclass of stand-ins for classes of the test. Calling one makes an object in the test process."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._gametape_call(cls._gametape_number, ("make", "", *args), kwargs)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith(("_gametape", "__abstract")):
            raise AttributeError(name)
        return cls._gametape_call(cls._gametape_number, ("get", name), {})


class ObjectOfTest:
    """An object of the test."""

    def __getattr__(self, name: str) -> Any:
        return _use(self, "get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        _use(self, "set", name, value)

    def __delattr__(self, name: str) -> None:
        _use(self, "delete", name)

    def __copy__(self) -> Any:
        return _use(self, "copy", "shallow")

    def __deepcopy__(self, _: Any) -> Any:
        return _use(self, "copy", "deep")

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return _use(self, "get", "__dict__")


def _use(stand_in: Any, operation: str, name: str, *args: Any, **kwargs: Any) -> Any:
    number = object.__getattribute__(stand_in, "_gametape_object")
    return type(stand_in)._gametape_call(number, (operation, name, *args), kwargs)


def _special(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "__exit__":
            args = (*args[:2], None)
        return _use(self, "special", name, *args, **kwargs)

    return method


class _Member:
    """A member that a class of the test defines beside those of its builtin base."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, stand_in: Any, owner: Any) -> Any:
        return type(owner).__getattr__(owner, self._name) if stand_in is None else _use(stand_in, "get", self._name)


class TestObjectTable:
    """The stand-ins by number."""

    __test__ = False

    def __init__(self, call_back: CallBack) -> None:
        self._call_back = call_back
        self._classes: dict[int, Any] = {}
        self._objects: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._contents: dict[int, tuple[Any, DataBase, list[Any]]] = {}

    def number(self, value: Any) -> int | None:
        """The number of an object or class of the test."""
        return self._numbers.get(id(value))

    def changed(self) -> tuple[tuple[Any, Any], ...]:
        """The containers of the test's own classes that changed since they came, with their data."""
        found = []
        for stand_in, base, before in self._contents.values():
            data = base.read(stand_in)
            if not same_elements(before, elements(data)):
                found.append((stand_in, data))
        return tuple(found)

    def forget_contents(self) -> None:
        """The outermost call is over: the test process takes no more changes of what came with it."""
        self._contents.clear()

    def object(self, number: int, description: dict[str, Any], data: Any) -> Any:
        kind = self.stand_in_class(description)
        base: DataBase | None = DATA_BASES.get(description["base"])
        known = self._objects.get(number)
        if known is None:
            known = object.__new__(kind) if base is None else base.make(kind, data)
            object.__setattr__(known, "_gametape_object", number)
            self._objects[number] = known
            self._numbers[id(known)] = number
        elif base is not None and base.replace is not None:
            base.replace(known, data)
        if base is not None and base.replace is not None:
            self._contents[number] = known, base, elements(data)
        return known

    def stand_in_class(self, description: dict[str, Any]) -> Any:
        number = description["number"]
        if number not in self._classes:
            built = self._classes[number] = self._build(description)
            self._numbers[id(built)] = number
        return self._classes[number]

    def _build(self, description: dict[str, Any]) -> Any:
        base: DataBase | None = DATA_BASES.get(description["base"])
        namespace: dict[str, Any] = {
            "_gametape_call": staticmethod(self._call_back),
            "_gametape_number": description["number"],
            "__module__": "tests",
            **{name: _Member(name) for name in description["members"]},
            **{name: _special(name) for name in description["special"]},
        }
        if not description["hashable"]:
            namespace["__hash__"] = None
        elif "__hash__" not in namespace and base is None:
            namespace["__hash__"] = lambda self: hash(object.__getattribute__(self, "_gametape_object"))
        if description["fields"] is not None:
            namespace["__dataclass_fields__"] = _dataclass_fields(description["fields"])
        if description["library"] is not None:
            real = named_in_library(description["library"])
            namespace["__class__"] = property(lambda _: real)
        bases = (ObjectOfTest,) if base is None else (ObjectOfTest, base.kind)
        built = ClassOfTest(description["name"], bases, namespace)
        register_abstract(built, description["abstract"])
        return built


def _dataclass_fields(names: tuple[str, ...]) -> Any:
    made: Any = dataclasses.make_dataclass("Fields", names)
    return made.__dataclass_fields__


def named_in_library(name: str) -> Any:
    """A class or function of the standard library."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found
