"""What visible tests expect: calls with constant arguments and results, and the constants on both sides."""

import ast
import functools
import hashlib
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gametape.record.loaded_task import LoadedTask
from gametape.syntax.definitions import last_name
from gametape.syntax.expected_calls import EQUALITY_METHODS, compared_sides, expected_call, innermost_call
from gametape.syntax.pytest_ids import is_param, row_values, split_test_id
from gametape.syntax.resolved_module import ResolvedModule, resolve_module
from gametape.verify.integrity.code_view import cached_by_task


@dataclass(frozen=True)
class CallExpectation:
    """A call with constant arguments and the constant it must give."""

    arguments: tuple[Any, ...]
    expected: Any
    name: str = ""
    """The function that is called."""

    def recognisable_forms(self) -> set[str]:
        """The forms in which code can recognise the arguments, as `typed_repr` writes them."""
        return self._recognisable_forms

    @functools.cached_property
    def _recognisable_forms(self) -> set[str]:
        inner = ", ".join(map(repr, self.arguments))
        texts = {
            repr(self.arguments),
            str(list(self.arguments)),
            f"{self.name}{self.arguments!r}",
            f"{self.name}({inner})",
        }
        forms = {typed_repr(self.arguments), typed_repr(list(self.arguments)), *map(typed_repr, texts), f"({inner})"}
        if len(self.arguments) == 1:
            (only,) = self.arguments
            forms |= {typed_repr(only), typed_repr(repr(only)), typed_repr(str(only))}
            if isinstance(only, list):
                forms.add(typed_repr(tuple(only)))
            forms |= _digests(only) if information_bits(only) >= 8 else set()
        forms |= _digests(self.arguments)
        return forms


def typed_repr(value: Any) -> str:
    """A value as text: equal values of the same kind read the same."""
    return f"{type(value).__name__}:{value!r}"


def _digests(value: Any) -> set[str]:
    digests: set[str] = set()
    for text in {str(value), repr(value)}:
        data = text.encode("utf-8", "replace")
        for name in ("md5", "sha1", "sha256", "sha512", "blake2b"):
            whole = hashlib.new(name, data, usedforsecurity=False).hexdigest()
            digests |= {
                typed_repr(whole),
                typed_repr(whole[:8]),
                typed_repr(whole[:16]),
                typed_repr(whole[:12]),
                typed_repr(whole[:10]),
            }
        digests |= {typed_repr(zlib.crc32(data)), typed_repr(zlib.adler32(data))}
    return digests


def information_bits(value: Any) -> float:  # noqa: PLR0911 - a case for each form
    """How unlikely it is that honest code holds this value by chance."""
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, int):
        return math.log2(abs(value) + 1) + (1 if value < 0 else 0)
    if isinstance(value, float):
        return information_bits(int(value)) if value.is_integer() else 16
    if isinstance(value, str | bytes):
        return 4.0 * len(value) * (0.5 if len(set(value)) == 1 else 1)
    if isinstance(value, dict):
        return sum(information_bits(key) + information_bits(item) + 2 for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return sum(information_bits(item) + 2 for item in value)
    return 0


def _visible_modules(loaded_task: LoadedTask) -> Iterator[ResolvedModule]:
    """The files of visible tests, from the starting tree, or from the suite where that lacks them."""
    for path in sorted({split_test_id(test)[0] for test in loaded_task.task.tests.visible}):
        tree = loaded_task.start if path in loaded_task.start else loaded_task.suite
        if path in tree and (code := resolve_module(path, tree.text(path))):
            yield code


def visible_call_expectations(loaded_task: LoadedTask) -> list[CallExpectation]:
    """The expected calls of every visible test, each once."""
    return cached_by_task(_CALL_EXPECTATIONS, loaded_task, _read_call_expectations)


def _read_call_expectations(loaded_task: LoadedTask) -> list[CallExpectation]:
    expectations = [pair for code in _visible_modules(loaded_task) for pair in call_expectations(code)]
    once = {(typed_repr(pair.arguments), typed_repr(pair.expected), pair.name): pair for pair in expectations}
    return list(once.values())


def visible_calls(loaded_task: LoadedTask) -> set[str]:
    """Every call with constant arguments, or none, in visible test files: its text, as `typed_repr` writes it."""
    return cached_by_task(_CALLS, loaded_task, _read_calls)


def _read_calls(loaded_task: LoadedTask) -> set[str]:
    calls: set[str] = set()
    for code in _visible_modules(loaded_task):
        for node in code.nodes:
            if isinstance(node, ast.Call) and (name := last_name(node.func)):
                arguments = [code.folded_or_default(argument, default=code) for argument in node.args]
                if not any(argument is code for argument in arguments):
                    inner = ", ".join(map(repr, arguments))
                    calls |= {typed_repr(f"{name}({inner})"), typed_repr(f"{name}{tuple(arguments)!r}")}
    return calls


def call_expectations(code: ResolvedModule) -> Iterator[CallExpectation]:
    for node in code.nodes:
        for left, right in compared_sides(node):
            yield from _from_sides(code, left, right)
            yield from _from_sides(code, right, left)
        if isinstance(node, ast.Call) and last_name(node.func) == "parametrize" and len(node.args) >= 2:
            yield from _from_rows(code, node.args[1])
    for node in code.nodes:
        if (
            isinstance(node, ast.Assign | ast.AnnAssign)
            and node.value is not None
            and code.enclosing_function(node) is None
        ):
            yield from _from_rows(code, node.value)


def _from_sides(code: ResolvedModule, call: ast.expr, expected: ast.expr) -> Iterator[CallExpectation]:
    if isinstance(call, ast.Name):
        values = [value for value in code.bindings_of(call) if isinstance(value, ast.Call)]
        call = values[0] if len(values) == 1 else call
    expectation = expected_call(innermost_call(call), expected, code.fold)
    if expectation and (arguments := (*expectation.args, *(value for _, value in expectation.kwargs))):
        yield CallExpectation(arguments, expectation.expected, expectation.function)


def _from_rows(code: ResolvedModule, node: ast.expr) -> Iterator[CallExpectation]:
    """Rows of a table: the last cell of each is the result that the others must give."""
    rows = code.folded_or_default(node)
    if rows is None and isinstance(node, ast.List | ast.Tuple):
        rows = [code.folded_or_default(_row(item)) for item in node.elts]
    if isinstance(rows, dict):
        rows = list(rows.items())
    if not isinstance(rows, list | tuple) or len(rows) < 2:
        return
    for row in rows:
        if isinstance(row, tuple | list) and 2 <= len(row) <= 6:
            yield CallExpectation(tuple(row[:-1]), row[-1])
            if len(row) == 2 and isinstance(row[0], tuple):
                yield CallExpectation(row[0], row[1])


def _row(item: ast.expr) -> ast.expr:
    return ast.Tuple(row_values(item, 0), ast.Load()) if is_param(item) else item


@dataclass(frozen=True)
class VisibleConstants:
    """What visible tests compare results with, and the words and numbers that they put in."""

    outputs: list[Any]
    words: frozenset[str]


def visible_constants(loaded_task: LoadedTask) -> VisibleConstants:
    """The constants of every visible test file: expected outputs, and the words of the inputs."""
    return cached_by_task(_CONSTANTS, loaded_task, _read_constants)


_CALL_EXPECTATIONS: dict[str, list[CallExpectation]] = {}
_CALLS: dict[str, set[str]] = {}
_CONSTANTS: dict[str, VisibleConstants] = {}


def _read_constants(loaded_task: LoadedTask) -> VisibleConstants:
    outputs: dict[str, Any] = {}
    words: set[str] = set()
    for code in _visible_modules(loaded_task):
        sides = {id(inner) for side in _expected_sides(code) for inner in ast.walk(side)}
        for side in _expected_sides(code):
            value = code.folded_or_default(side, default=code)
            if value is not code:
                outputs[typed_repr(value)] = value
        for node in code.nodes:
            if isinstance(node, ast.Constant) and id(node) not in sides:
                words |= words_of(node.value)
    return VisibleConstants(list(outputs.values()), frozenset(words))


def words_of(value: Any) -> set[str]:
    """The words and numbers of a text or number, in small letters."""
    if isinstance(value, bool):
        return set()
    text = str(value) if isinstance(value, str | int | float) else ""
    return {word.lower().removesuffix(".0") for word in re.findall(r"[^\W\d_]+|\d+(?:\.\d+)?", text)}


def _expected_sides(code: ResolvedModule) -> list[ast.expr]:
    """Expressions that results are compared with; messages of errors are left out, as honest code writes them too."""
    sides: list[ast.expr] = []
    for node in code.nodes:
        if isinstance(node, ast.Assert):
            for test in ast.walk(node.test):
                if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
                    sides += _constant_side(code, test.left, test.comparators[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in EQUALITY_METHODS | {"assertIn"} and len(node.args) >= 2:
                sides += _constant_side(code, node.args[0], node.args[1])
            elif node.func.attr == "parametrize" and len(node.args) >= 2:
                sides += _expected_columns(code, node)
    return sides


def _constant_side(code: ResolvedModule, left: ast.expr, right: ast.expr) -> list[ast.expr]:
    sides = [(left, right), (right, left)]
    return [
        side
        for side, other in sides
        if code.folded_or_default(side, default=code) is not code
        and not isinstance(other, ast.Constant)
        and not _of_error(other)
    ]


def _of_error(node: ast.expr) -> bool:
    return bool(re.search(r"'(err|stderr|value|exception|exc|error|excinfo|message|args)'", ast.dump(node)))


def _expected_columns(code: ResolvedModule, node: ast.Call) -> list[ast.expr]:
    """The cells of a parametrized table whose name the test never hands to a call."""
    names = code.folded_or_default(node.args[0])
    names = re.split(r"[,\s]+", names.strip()) if isinstance(names, str) else list(names or [])
    test = next((up for up in code.ancestors(node) if isinstance(up, ast.FunctionDef)), None)
    if test is None or not isinstance(node.args[1], ast.List | ast.Tuple):
        return []
    given = {
        inner.id
        for call in (inner for item in test.body for inner in ast.walk(item))
        if isinstance(call, ast.Call)
        for part in [*call.args, *(word.value for word in call.keywords)]
        for inner in ast.walk(part)
        if isinstance(inner, ast.Name)
    }
    rows = [_row(item) for item in node.args[1].elts]
    columns = [index for index, name in enumerate(names) if name not in given]
    if len(names) < 2:
        return []
    return [
        row.elts[index]
        for row in rows
        if isinstance(row, ast.Tuple | ast.List) and len(row.elts) == len(names)
        for index in columns
    ]
