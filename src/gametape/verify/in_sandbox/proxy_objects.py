"""Objects of the test that are passed to the code under test: fakes, streams, objects of classes that the test defines.

They stay here. The worker gets their number and a description of their class, and asks for attributes, methods and
special methods by callbacks. It is hostile, so an `ObjectPort` allows only what an honest user of such an object does:
no name by which one gets from an object to its code, and no change of what a test checks. Only objects of the test's
own classes, of a few harmless library classes and of mocks have a port.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from . import wire_protocol as words
from .wire import Unsendable, WireError
from .wire_abstract import abstract_names
from .wire_bases import DATA_BASE_NAMES, DataBase, data_base

__tracebackhide__ = True  # a failed test shows the test, not these frames

_SAFE_MODULES = frozenset(
    {"_io", "io", "abc", "random", "_random", "collections", "collections.abc", "_collections_abc", "argparse", "array"}
    | {"string", "queue", "_queue", "contextlib", "re", "decimal", "fractions", "numbers", "datetime", "enum", "typing"}
    | {"dataclasses", "uuid", "ipaddress", "unittest.mock", "csv", "_csv", "email.message", "_thread", "tempfile"}
    | {"http.cookies", "html.parser", "functools", "itertools", "json.encoder", "json.decoder"}
)
_SAFE_CLASSES = frozenset({"builtins.object", "types.SimpleNamespace", "xml.etree.ElementTree.Element"})
_PURE_MODULES = frozenset(
    {"builtins", "_operator", "operator", "math", "_functools", "functools", "itertools", "_bisect", "statistics"}
    | {"string", "copy", "json", "re", "textwrap", "fractions", "decimal"}
)
_NOT_PURE = frozenset(
    {"open", "input", "print", "exec", "eval", "compile", "__import__", "__build_class__", "breakpoint"}
    | {"globals", "locals", "vars", "id", "hash", "dir"}
)
_MAKERS = frozenset({"types", "dataclasses", "collections", "typing", "enum"})
_OF_MOCKS = ("assert", "call", "mock", "method_calls", "side_effect", "return_value", "configure", "attach", "reset")
_INSIDE_MOCKS = ("_mock_", "_spec_", "_call", "_execute_mock", "_get_child_mock", "_increment_mock")
_TO_PYTEST = ("__", "_gametape", "pytest", "_pytest")
_READABLE = frozenset({"__name__", "__qualname__", "__doc__", "__dict__"})
_SPECIAL = frozenset(words.SPECIAL_METHODS) - {"__init__"}
_PREFIXES = tuple({os.path.realpath(prefix) + os.sep for prefix in (sys.prefix, sys.base_prefix)})
_OWN = os.path.dirname(os.path.realpath(__file__)) + os.sep


def is_library(kind: Any) -> bool:
    """Whether a class or function is one of the standard library, under its own name."""
    module = sys.modules.get(getattr(kind, "__module__", None) or "")
    if module is None or module.__name__.partition(".")[0] not in sys.stdlib_module_names:
        return False
    found: Any = module
    for name in getattr(kind, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found is kind


def _is_of_test(value: Any) -> bool:
    """Whether a class or function was written for the test: neither installed nor part of this package. A class that a
    library function made for it, as `make_dataclass` does, has the library's module and is not in it."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if module is None:
        return False
    if module.__name__.partition(".")[0] in sys.stdlib_module_names:
        return module.__name__ in _MAKERS and isinstance(value, type) and not hasattr(module, value.__name__)
    file = getattr(module, "__file__", None)
    path = os.path.realpath(file) if file else ""
    return "site-packages" not in path and not path.startswith((_OWN, *_PREFIXES))


def library_name(function: Any) -> str | None:
    """The name of a library function that gives the same in every process, so that the worker can use its own."""
    module = getattr(function, "__module__", None) or getattr(
        getattr(function, "__objclass__", None), "__module__", None
    )
    name = getattr(function, "__qualname__", "")
    if module not in _PURE_MODULES or name in _NOT_PURE:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is function else None


def may_have_port(kind: type) -> bool:
    """Whether objects of a class, or the class itself, may be used by the worker."""
    return all(
        base.__module__ in _SAFE_MODULES
        or f"{base.__module__}.{base.__qualname__}" in _SAFE_CLASSES
        or data_base(base) is not None
        or _is_of_test(base)
        for base in kind.__mro__
    )


def describe_class_of_test(kind: type, number: int) -> dict[str, Any]:
    """What the worker needs to build a stand-in for a class of the test. Nothing in it names a test."""
    base = data_base(kind)
    local = base.kind.__mro__ if base else (object,)
    own = [each for each in kind.__mro__ if each not in local]
    defined = {name: value for each in reversed(own) for name, value in vars(each).items()}
    library = (
        f"{kind.__module__}:{kind.__qualname__}" if is_library(kind) and kind.__module__ != "unittest.mock" else None
    )
    return {
        "number": number,
        "name": neutral_name(kind.__name__),
        "special": tuple(sorted(name for name in _SPECIAL & defined.keys() if defined[name] is not None)),
        "hashable": kind.__hash__ is not None,
        "members": tuple(sorted(name for name in defined if not name.startswith("__"))) if base else (),
        "base": DATA_BASE_NAMES[base.kind] if base else None,
        "abstract": abstract_names(kind),
        "library": library,
        "fields": tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None,
    }


def neutral_name(name: Any) -> str:
    """A name of the test that does not tell the worker which test runs."""
    text = name.rpartition("<locals>.")[2] if isinstance(name, str) else "function"
    return "function" if text.lower().startswith("test") else text


class ObjectPort:
    """What the worker may do with an object of the test."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def __call__(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        if operation not in _OPERATIONS or not args or type(args[0]) is not str:
            raise WireError("an operation that objects of a test do not have")
        return _OPERATIONS[operation](self.target, *args, **kwargs)


def _get(target: Any, name: str) -> Any:
    _check_name(target, name)
    if name == "__dict__":
        return {key: value for key, value in vars(target).items() if not key.startswith(_TO_PYTEST)}
    value = getattr(target, name)
    if isinstance(value, (types.FunctionType, types.MethodType, types.BuiltinFunctionType, type)):
        owner = getattr(value, "__self__", None)
        if owner is not target and not _is_of_test(value) and not (isinstance(value, type) and is_library(value)):
            raise AttributeError(f"split mode: {name} of an object of the test is not shown")
    return value


def _check_name(target: Any, name: str) -> None:
    kind = target if isinstance(target, type) else type(target)
    hidden = name.startswith("_") if is_library(kind) else name.startswith(_TO_PYTEST)
    if (hidden and name not in _READABLE) or _is_of_mock(kind, name):
        raise AttributeError(f"split mode: {name} of an object of the test is not shown")


def _is_of_mock(kind: type, name: str) -> bool:
    """Whether by this name one gets to what a mock was told to answer, or to what a test will ask it. Each mock has a
    class of its own, and a test may derive others."""
    if not any(base.__module__ == "unittest.mock" for base in kind.__mro__):
        return False
    return name == "__dict__" or name.startswith((*_OF_MOCKS, *_INSIDE_MOCKS))


def _set(target: Any, name: str, value: Any) -> None:
    kind = target if isinstance(target, type) else type(target)
    _check_name(target, name)
    if name in _READABLE or callable(getattr(kind, name, None)) or callable(value):
        raise AttributeError(f"split mode: {name} of an object of the test cannot be set")
    setattr(target, name, value)


def _delete(target: Any, name: str) -> None:
    _check_name(target, name)
    delattr(target, name)


def _special(target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    method = getattr(type(target), name, None) if name in _SPECIAL and not isinstance(target, type) else None
    if method is None:
        raise WireError(f"{name} of an object that has none")
    return method(target, *args, **kwargs)


def _copy(target: Any, depth: str) -> Any:
    return copy.deepcopy(target) if depth == "deep" else copy.copy(target)


def _make(target: Any, _: str, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(target, type):
        raise WireError("an object of something that is no class")
    return target(*args, **kwargs)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "get": _get,
    "set": _set,
    "delete": _delete,
    "special": _special,
    "copy": _copy,
    "make": _make,
}


def data_of(value: Any) -> tuple[DataBase, Any] | None:
    base = data_base(type(value))
    return None if base is None else (base, base.read(value))


def refuse(kind: type) -> Unsendable:
    return Unsendable(
        f"split mode: {kind.__module__}.{kind.__qualname__} cannot be passed to the code under test; tests that need "
        "this use shared mode"
    )
