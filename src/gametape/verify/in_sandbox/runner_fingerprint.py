"""Runs *inside*: what the runner and the functions that results are compared with looked like before hostile code.

A function is known by its identity and that of its code, so that neither replacing nor rewriting it goes unseen.
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

Print = tuple[str, Mapping[str, Any], str, Any, types.FunctionType | None, types.CodeType | None]
"""A name, where it stands under which key, the value there, the function it wraps, and that function's code."""
_RUNNER = ("pytest", "_pytest", "pluggy", "unittest")
_QUICK = {
    "_pytest.runner", "_pytest.reports", "_pytest.python", "_pytest.python_api", "_pytest.outcomes", "_pytest.nodes",
    "_pytest.raises", "pluggy._hooks", "pluggy._callers", "pluggy._manager", "unittest.case",
}  # fmt: skip
_ORDINARY: tuple[tuple[types.ModuleType, tuple[str, ...]], ...] = (
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
    """Taken once, in the trusted parent. `quick_changes` after every test, `changes` at the end of a file.

    Both name what was replaced, with the file of the replacement where it has one: `math.isclose by /workspace/x.py`.
    """

    quick_changes: Callable[[], list[str]]
    changes: Callable[[], list[str]]

    def __init__(self) -> None:
        quick = tuple(_ordinary()) + tuple(_of_runner(lambda name: name in _QUICK))
        every = tuple(_ordinary()) + tuple(_of_runner(lambda name: name.partition(".")[0] in _RUNNER))
        self.quick_changes, self.changes = _comparing(quick), _comparing(every)


def _comparing(prints: tuple[Print, ...]) -> Callable[[], list[str]]:
    """Everything it needs is bound here, out of reach of later patches."""
    blamed = _blamed

    def changes() -> list[str]:
        found = []
        for name, space, key, value, function, code in prints:
            if key not in space:
                found.append(name)
            elif space[key] is not value or (function is not None and function.__code__ is not code):
                found.append(name + blamed(space[key]))
        return found

    return changes


def _function_in(value: Any) -> types.FunctionType | None:
    kind = type(value)
    if kind is classmethod or kind is staticmethod:
        value = value.__func__
    elif kind is property:
        value = value.fget
    return value if type(value) is types.FunctionType else None


def _blamed(value: Any) -> str:
    function = _function_in(value)
    return f" by {function.__code__.co_filename}" if function is not None else ""


def _print(name: str, space: Mapping[str, Any], key: str) -> Print:
    function = _function_in(space[key])
    return name, space, key, space[key], function, function and function.__code__


def _ordinary() -> Iterator[Print]:
    for module, names in _ORDINARY:
        space = vars(module)
        for name in names:
            yield _print(f"{module.__name__}.{name}", space, name)


def _of_runner(wanted: Callable[[str], bool]) -> Iterator[Print]:
    seen: set[int] = set()
    for name, module in sorted(sys.modules.items()):
        if not wanted(name) or not isinstance(module, types.ModuleType):
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__ == name:
                yield _print(f"{name}.{key}", vars(module), key)
                if id(value) not in seen:
                    seen.add(id(value))
                    yield from _of_class(f"{name}.{key}", value)
            elif isinstance(value, types.FunctionType | types.BuiltinFunctionType):
                yield _print(f"{name}.{key}", vars(module), key)


def _of_class(name: str, owner: type) -> Iterator[Print]:
    space = vars(owner)
    for key, value in list(space.items()):
        if isinstance(value, types.FunctionType | classmethod | staticmethod | property):
            yield _print(f"{name}.{key}", space, key)
