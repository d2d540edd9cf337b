"""A fingerprint of pytest and of the builtins that tests rely on, taken before hostile code runs.

A function is identified by itself and by its code object, so that both replacing and rewriting it is detected. What a
module imported counts like what it defines, and a method that a class did not have counts as a change of the class.
"""

import builtins
import math
import operator
import os
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

Entry = tuple[str, Mapping[str, Any], str, Any, types.FunctionType | None, types.CodeType | None]
"""A name, its namespace and key, the value there, the function in it, and that function's code."""
Namespace = tuple[str, Mapping[str, Any], frozenset[str], "frozenset[str] | None"]
"""A name, its namespace, the keys there, and which new ones count; None: those of a class that are telling."""
_MADE_BY_PYTHON = {
    "__annotations__", "__annotate__", "__annotations_cache__", "__annotate_func__", "__abstractmethods__", "_abc_impl",
}  # fmt: skip
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
        library = tuple(_library_entries())
        quick, every = _runner_modules(lambda name: name in _QUICK), _runner_modules(_is_of_the_runner)
        self.quick_changes = _make_comparison(library + tuple(_runner_entries(quick)), tuple(_namespaces(quick)))
        self.changes = _make_comparison(library + tuple(_runner_entries(every)), tuple(_namespaces(every)))


def _make_comparison(entries: tuple[Entry, ...], namespaces: tuple[Namespace, ...]) -> Callable[[], list[str]]:
    """Everything that the function needs is bound here, so that later patches cannot reach it."""
    origin, is_telling, files = _origin, _is_telling, _runner_files()

    def changes() -> list[str]:
        changed = []
        for name, space, key, value, function, code in entries:
            if key not in space:
                changed.append(name)
            elif space[key] is not value or (function is not None and function.__code__ is not code):
                changed.append(name + origin(space[key]))
        for name, space, known, telling in namespaces:
            if len(space) != len(known):
                for key in space.keys() - known:
                    if key in telling if telling is not None else is_telling(key, space[key], files):
                        changed.append(f"{name}.{key}" + origin(space[key]))
        return changed

    return changes


def _runner_files() -> frozenset[str]:
    return frozenset(getattr(module, "__file__", None) or "" for _, module in _runner_modules(_is_of_the_runner))


def _is_telling(key: str, value: Any, files: frozenset[str]) -> bool:
    """Whether a new name of a class changes how its objects behave, and the runner did not put it there itself."""
    function = _function_in(value)
    own = function is not None and function.__code__.co_filename in files
    return not own and key not in _MADE_BY_PYTHON and hasattr(type(value), "__get__")


def _function_in(value: Any) -> types.FunctionType | None:
    kind = type(value)
    if kind is classmethod or kind is staticmethod:
        value = value.__func__
    elif kind is property:
        value = value.fget
    return value if type(value) is types.FunctionType else None


def _origin(value: Any) -> str:
    function = _function_in(value)
    if function is not None:
        return f" by {function.__code__.co_filename}"
    module = sys.modules.get(getattr(value, "__module__", None) or "") if isinstance(value, type) else None
    file = getattr(module, "__file__", None)
    return f" by {file}" if isinstance(file, str) else ""


def _entry(name: str, space: Mapping[str, Any], key: str) -> Entry:
    function = _function_in(space[key])
    return name, space, key, space[key], function, function and function.__code__


def _library_entries() -> Iterator[Entry]:
    for module, names in _LIBRARY:
        space = vars(module)
        for name in names:
            yield _entry(f"{module.__name__}.{name}", space, name)


def _is_of_the_runner(name: str) -> bool:
    return name.partition(".")[0] in _RUNNER


def _runner_modules(wanted: Callable[[str], bool]) -> list[tuple[str, types.ModuleType]]:
    return [
        (name, module)
        for name, module in sorted(sys.modules.items())
        if wanted(name) and isinstance(module, types.ModuleType)
    ]


def _own_classes(modules: Iterable[tuple[str, types.ModuleType]]) -> Iterator[tuple[str, type]]:
    """The classes that these modules define, each once."""
    seen: set[int] = set()
    for name, module in modules:
        for key, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__ == name and id(value) not in seen:
                seen.add(id(value))
                yield f"{name}.{key}", value


def _runner_entries(modules: Sequence[tuple[str, types.ModuleType]]) -> Iterator[Entry]:
    """What modules of the runner define or import and can be called, and what their classes hold."""
    for name, module in modules:
        for key, value in list(vars(module).items()):
            if callable(value):
                yield _entry(f"{name}.{key}", vars(module), key)
    for name, owner in _own_classes(modules):
        space = vars(owner)
        for key, value in list(space.items()):
            if key not in _MADE_BY_PYTHON and (callable(value) or hasattr(type(value), "__get__")):
                yield _entry(f"{name}.{key}", space, key)


def _namespaces(modules: Sequence[tuple[str, types.ModuleType]]) -> Iterator[Namespace]:
    """Classes may get no new method; modules load parts of theirs late, and may get no name that hides a builtin."""
    for name, module in modules:
        yield name, vars(module), frozenset(vars(module)), frozenset(vars(builtins)) - {"__doc__", "__spec__"}
    for name, owner in _own_classes(modules):
        yield name, vars(owner), frozenset(vars(owner)), None
