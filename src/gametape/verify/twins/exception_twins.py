"""Twins of `raises` and `warns`.

What has raised raises still when nothing waits for it, and what has not raised will not. So a guard that waits for an
exception becomes one that waits for a warning, and the other way round. Waiting for another exception contradicts only
if nothing is both: most builtin exceptions may have a common child, so the kind `exception` takes one that libraries do
not derive their errors from, and only for builtins, whose ancestors are known. Such a guard looks odd. The kind
`sibling` waits for an error that people do wait for: it refutes a test and accuses nobody (see `plan.LENIENT_KINDS`).
"""

import ast
import builtins
import random
from collections.abc import Iterator

from gametape.syntax.definitions import last_name
from gametape.syntax.source_text import SourceEdit
from gametape.verify.twins.assertion_twins import TwinEdits
from gametape.verify.twins.parsed_tests import TestFunction
from gametape.verify.twins.replacement_literals import replacement_pattern

_UNRELATED_EXCEPTIONS = (
    "BufferError",
    "ChildProcessError",
    "FloatingPointError",
    "StopAsyncIteration",
    "UnicodeTranslateError",
)
_USUAL_EXCEPTIONS = (
    "ValueError", "TypeError", "KeyError", "IndexError", "AttributeError", "RuntimeError", "ZeroDivisionError",
    "NotImplementedError", "FileNotFoundError", "OverflowError",
)  # fmt: skip
_SELDOM_BASES = ("IndexError", "AttributeError", "ZeroDivisionError", "NotImplementedError")
"""Errors that people wait for, and that a package's own errors are seldom derived from."""
_OFTEN_COMBINED = (
    {"ValueError", "TypeError", "KeyError", "OverflowError", "NotImplementedError"},
    {"KeyError", "AttributeError", "IndexError", "TypeError"},
    {"RuntimeError", "NotImplementedError", "FileNotFoundError"},
    {"ZeroDivisionError", "OverflowError"},
)
_NEVER_LOOSE = {"KeyboardInterrupt", "BaseException", "GeneratorExit"}
_METHODS = {
    "assertRaises": "assertWarns", "assertRaisesRegex": "assertWarnsRegex",
    "assertWarns": "assertRaises", "assertWarnsRegex": "assertRaisesRegex",
}  # fmt: skip
_FUNCTIONS = {"pytest.raises": "warns", "pytest.warns": "raises"}


def twins_of_guard(test: TestFunction, statement: ast.stmt, rng: random.Random) -> Iterator[TwinEdits]:
    """Twins of `with raises(...)` and of `raises(..., function)`, certain to be reached."""
    for call, is_block in _guards(test, statement):
        if not test.is_deterministic(statement) or not (
            call.args or any(word.arg == "expected_exception" for word in call.keywords)
        ):
            continue
        waits = _waits_for_exception(test, call)
        expected = _expected(call)
        if waits and isinstance(expected, ast.expr):
            if not _is_loose(test, expected):
                yield from _sibling(test, expected, rng)
                yield from _unrelated_exception(test, expected, rng)
                yield from _pattern(test, call, rng)
                yield from _guard_of_other_kind(test, call, expected, is_block)
        elif isinstance(expected, ast.expr):
            yield from _guard_of_other_kind(test, call, expected, is_block)


def _guards(test: TestFunction, statement: ast.stmt) -> Iterator[tuple[ast.Call, bool]]:
    """Calls that wait for an exception or a warning, and whether what follows is a block."""
    calls: list[ast.expr] = []
    if isinstance(statement, ast.With | ast.AsyncWith) and len(statement.items) == 1:
        calls = [statement.items[0].context_expr]
    elif isinstance(statement, ast.Expr | ast.Assign):
        calls = [statement.value]
    for call in calls:
        if isinstance(call, ast.Call) and (
            test.called_name(call) in _FUNCTIONS or test.self_method_name(call) in _METHODS
        ):
            is_block = isinstance(statement, ast.With | ast.AsyncWith)
            if is_block or len(call.args) > 1 + ("Regex" in (test.self_method_name(call) or "")):
                yield call, is_block


def _waits_for_exception(test: TestFunction, call: ast.Call) -> bool:
    return test.called_name(call) == "pytest.raises" or (test.self_method_name(call) or "").startswith("assertRaises")


def _expected(call: ast.Call) -> ast.expr | None:
    if call.args:
        return call.args[0]
    return next((word.value for word in call.keywords if word.arg == "expected_exception"), None)


def _classes(test: TestFunction, expected: ast.expr) -> list[type] | None:
    """The builtin classes named; None if any is not a builtin."""
    nodes = expected.elts if isinstance(expected, ast.Tuple) else [expected]
    resolved = [getattr(builtins, (test.resolve(node) or "").removeprefix("builtins."), None) for node in nodes]
    classes = [value for value in resolved if isinstance(value, type) and issubclass(value, BaseException)]
    return classes if len(classes) == len(nodes) else None


def _is_loose(test: TestFunction, expected: ast.expr) -> bool:
    """Whether this may be an exception that ends or skips a run of tests when nothing holds it."""
    nodes = expected.elts if isinstance(expected, ast.Tuple) else [expected]
    origins = [test.resolve(node) or "" for node in nodes]
    return any(o.removeprefix("builtins.") in _NEVER_LOOSE or o.startswith(("pytest.", "_pytest.")) for o in origins)


def _sibling(test: TestFunction, expected: ast.expr, rng: random.Random) -> Iterator[TwinEdits]:
    """Another usual error for a builtin one; another error of the package for one of its own."""
    if isinstance(expected, ast.Tuple):
        return
    classes = _classes(test, expected)
    if classes:
        others = [name for name in _USUAL_EXCEPTIONS if not _related(classes[0], getattr(builtins, name))]
    else:
        others = _other_errors(test, expected) or list(_SELDOM_BASES)
    others = [name for name in others if name not in test.local_names and test.resolve(ast.Name(name, ast.Load()))]
    if others:
        yield "sibling", (test.text.replace(expected, rng.choice(others)),)


def _related(mine: type, other: type) -> bool:
    together = any({mine.__name__, other.__name__} <= group for group in _OFTEN_COMBINED)
    return together or issubclass(mine, other) or issubclass(other, mine)


def _other_errors(test: TestFunction, expected: ast.expr) -> list[str]:
    """Classes that the file imports from where it has the expected one, and that tests of it wait for."""
    origin, _, own = (test.resolve(expected) or "").rpartition(".")
    guarded = {
        node.args[0].id
        for node in ast.walk(test.module.tree)
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name) and _is_guard(node)
    }
    return [
        name
        for name, target in test.module.imports.items()
        if name in guarded and target.rpartition(".")[0] == origin and target.rpartition(".")[2] != own
    ]


def _is_guard(call: ast.Call) -> bool:
    return last_name(call.func) in {"raises", "assertRaises", "assertRaisesRegex"}


def _unrelated_exception(test: TestFunction, expected: ast.expr, rng: random.Random) -> Iterator[TwinEdits]:
    classes = _classes(test, expected)
    if not classes:
        return
    unrelated = [
        name
        for name in _UNRELATED_EXCEPTIONS
        if not any(
            issubclass(getattr(builtins, name), kind) or issubclass(kind, getattr(builtins, name)) for kind in classes
        )
        and test.resolve(ast.Name(name, ast.Load())) is not None
    ]
    if unrelated:
        yield "exception", (test.text.replace(expected, rng.choice(unrelated)),)


def _pattern(test: TestFunction, call: ast.Call, rng: random.Random) -> Iterator[TwinEdits]:
    """Another text for the message to match."""
    nodes = [word.value for word in call.keywords if word.arg in {"match", "expected_regex"}]
    if test.self_method_name(call) == "assertRaisesRegex" and len(call.args) > 1:
        nodes.append(call.args[1])
    for node in nodes:
        if isinstance(node, ast.Constant):
            new = replacement_pattern(test.text.text_of(node), node.value, rng)
            if new is not None:
                yield "message", (test.text.replace(node, new),)


def _guard_of_other_kind(test: TestFunction, call: ast.Call, expected: ast.expr, is_block: bool) -> Iterator[TwinEdits]:
    """A guard of the other sort, as wrong for the same code."""
    waits = _waits_for_exception(test, call)
    kind, name = ("unguarded", "UserWarning") if waits else ("warning", "ValueError")
    if test.resolve(ast.Name(name, ast.Load())) is None:
        return
    function = call.func
    method = test.self_method_name(call)
    if method is not None and isinstance(function, ast.Attribute):
        end = test.text.end(function)
        yield kind, (SourceEdit(end - len(method), end, _METHODS[method]), test.text.replace(expected, name))
    elif isinstance(function, ast.Attribute):
        end = test.text.end(function)
        new = _FUNCTIONS["pytest." + function.attr]
        yield kind, (SourceEdit(end - len(function.attr), end, new), test.text.replace(expected, name))
    elif waits and is_block:
        yield kind, (test.text.replace(call, 'memoryview(b"")'),)
