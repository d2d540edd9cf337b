"""A fingerprint of pytest and of the builtins that tests rely on, taken before hostile code runs.

A function is identified by itself and by its code object, so that both replacing and rewriting it is detected.
"""

import builtins
import math
import operator
import os
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Entry = tuple[str, Mapping[str, Any], str, Any, types.FunctionType | None, types.CodeType | None]
"""A name, its namespace and key, the value there, the function in it, and that function's code."""
_RUNNER = ("pytest", "_pytest", "pluggy", "unittest")
_QUICK = {
    "_pytest.runner", "_pytest.reports", "_pytest.python", "_pytest.python_api", "_pytest.outcomes", "_pytest.nodes",
    "_pytest.raises", "pluggy._hooks", "pluggy._callers", "pluggy._manager", "unittest.case",
}  # fmt: skip
_LIBRARY: tuple[tuple[types.ModuleType, tuple[str, ...]], ...] = (
    (math, ("isclose", "fabs", "isnan", "isfinite")),
    (operator, ("eq", "ne", "lt", "le", "gt", "ge")),
    (time, ("time", "perf_counter", "monotonic", "sleep", "process_time", "time_ns", "perf_counter_ns")),
    (os, ("_exit", "write", "fork", "kill", "waitpid", "getpid")),
    (sys, ("exit", "_getframe", "settrace", "setprofile")),
    (
        builtins,
        (
            "abs", "all", "any", "bool", "compile", "dict", "exec", "float", "frozenset", "getattr", "hasattr", "hash",
            "id", "int", "isinstance", "issubclass", "iter", "len", "list", "max", "min", "next", "range", "repr",
            "round", "set", "sorted", "str", "sum", "tuple", "type", "zip", "__import__", "__build_class__",
            "AssertionError", "BaseException", "Exception",
        ),
    ),
)  # fmt: skip


class RunnerFingerprint:
    """Taken once, in the trusted parent. `quick_changes` is called after every test, `changes` at the end of a file.

    Both list what was replaced, with the file of the replacement where it has one: `math.isclose by /workspace/x.py`.
    """

    quick_changes: Callable[[], list[str]]
    changes: Callable[[], list[str]]

    def __init__(self) -> None:
        quick = tuple(_library_entries()) + tuple(_runner_entries(lambda name: name in _QUICK))
        every = tuple(_library_entries()) + tuple(_runner_entries(lambda name: name.partition(".")[0] in _RUNNER))
        self.quick_changes, self.changes = _make_comparison(quick), _make_comparison(every)


def _make_comparison(entries: tuple[Entry, ...]) -> Callable[[], list[str]]:
    """Everything that the function needs is bound here, so that later patches cannot reach it."""
    origin = _origin

    def changes() -> list[str]:
        changed = []
        for name, space, key, value, function, code in entries:
            if key not in space:
                changed.append(name)
            elif space[key] is not value or (function is not None and function.__code__ is not code):
                changed.append(name + origin(space[key]))
        return changed

    return changes


def _function_in(value: Any) -> types.FunctionType | None:
    kind = type(value)
    if kind is classmethod or kind is staticmethod:
        value = value.__func__
    elif kind is property:
        value = value.fget
    return value if type(value) is types.FunctionType else None


def _origin(value: Any) -> str:
    function = _function_in(value)
    return f" by {function.__code__.co_filename}" if function is not None else ""


def _entry(name: str, space: Mapping[str, Any], key: str) -> Entry:
    function = _function_in(space[key])
    return name, space, key, space[key], function, function and function.__code__


def _library_entries() -> Iterator[Entry]:
    for module, names in _LIBRARY:
        space = vars(module)
        for name in names:
            yield _entry(f"{module.__name__}.{name}", space, name)


def _runner_entries(wanted: Callable[[str], bool]) -> Iterator[Entry]:
    seen: set[int] = set()
    for name, module in sorted(sys.modules.items()):
        if not wanted(name) or not isinstance(module, types.ModuleType):
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__ == name:
                yield _entry(f"{name}.{key}", vars(module), key)
                if id(value) not in seen:
                    seen.add(id(value))
                    yield from _class_entries(f"{name}.{key}", value)
            elif isinstance(value, types.FunctionType | types.BuiltinFunctionType):
                yield _entry(f"{name}.{key}", vars(module), key)


def _class_entries(name: str, owner: type) -> Iterator[Entry]:
    space = vars(owner)
    for key, value in list(space.items()):
        if isinstance(value, types.FunctionType | classmethod | staticmethod | property):
            yield _entry(f"{name}.{key}", space, key)
