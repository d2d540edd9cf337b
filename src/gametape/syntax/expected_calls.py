"""Calls that tests compare with constants: which arguments must give which value."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gametape.syntax.constants import NotConstant, fold
from gametape.syntax.definitions import FunctionNode, functions, last_name
from gametape.syntax.parametrization import argument_names
from gametape.syntax.pytest_ids import row_values
from gametape.syntax.source import parse

EXACT_EQUALITY_METHODS = frozenset((
    "assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSetEqual",
    "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual",
))  # fmt: skip
"""Methods of test cases that compare their first two arguments for equality."""

EQUALITY_METHODS = EXACT_EQUALITY_METHODS | {"assertAlmostEqual", "assertAlmostEquals", "assertIs"}
"""Methods of test cases that compare a result with what is expected, exactly or nearly."""

WAITING_CALLS = ("raises", "assertRaises", "assertRaisesRegex")
"""Calls that wait for an error, which is their first argument."""

_CONVERSIONS = ("list", "tuple", "set", "dict", "sorted", "str", "repr", "len")


@dataclass(frozen=True)
class ExpectedCall:
    """A call in a test, its arguments, and the value it is compared with. All are constants."""

    function: str
    """The last part of the name that is called; empty where it has none."""
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str | None, Any], ...]
    expected: Any
    test: str = ""
    """The test function, with its class: the end of its node id, without parameters."""
    path: str = ""

    def bind(self, parameters: list[str]) -> dict[str, Any] | None:
        """The arguments by parameter name; None if they do not fit."""
        if len(self.args) > len(parameters) or any(name not in parameters for name, _ in self.kwargs):
            return None
        return {**dict(zip(parameters, self.args, strict=False)), **{str(name): value for name, value in self.kwargs}}


def compared_sides(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The two sides of each equality that one assert statement or one call of unittest checks."""
    match node:
        case ast.Assert(test=test):
            yield from _equalities(test)
        case ast.Call(func=ast.Attribute(attr=name), args=[left, right, *_]) if name in EQUALITY_METHODS:
            yield left, right


def _equalities(test: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    match test:
        case ast.BoolOp(values=values):
            for value in values:
                yield from _equalities(value)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            yield left, right


def expected_call(
    call: ast.expr, expected: ast.expr, evaluate: Callable[[ast.expr], Any], test: str = "", path: str = ""
) -> ExpectedCall | None:
    """A call and what it is compared with, where both are constants; `evaluate` raises NotConstant."""
    if isinstance(expected, ast.Call) and "approx" in ast.unparse(expected.func) and expected.args:
        expected = expected.args[0]
    if not isinstance(call, ast.Call):
        return None
    try:
        args = tuple(evaluate(argument) for argument in call.args)
        kwargs = tuple((word.arg, evaluate(word.value)) for word in call.keywords)
        return ExpectedCall(last_name(call.func), args, kwargs, evaluate(expected), test, path)
    except NotConstant:
        return None


def innermost_call(node: ast.expr) -> ast.expr:
    """The call whose result is looked at: `f(x)` of `f(x).size`, `f(x)[0]` and `list(f(x))`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    match node:
        case ast.Call(func=ast.Name(id=name), args=[ast.Call() as inner]) if name in _CONVERSIONS:
            return inner
    return node


def extract_expected_calls(path: str, source: str | bytes) -> list[ExpectedCall]:
    """Every expected call of a test file, in the order in which the tests make them; parameters have their values."""
    return _extract_calls(path, source, _checked_sides)


def extract_refused_calls(path: str, source: str | bytes) -> list[ExpectedCall]:
    """Every call with constant arguments in a test file that must raise; what is expected is the error's name."""
    return _extract_calls(path, source, _refused_sides)


_Sides = Callable[[FunctionNode], Iterator[tuple[ast.expr, ast.expr]]]


def _extract_calls(path: str, source: str | bytes, sides: _Sides) -> list[ExpectedCall]:
    return [
        call
        for (owner, name), node in functions(parse(source)).items()
        for call in _calls_of_test(path, f"{owner}::{name}" if owner else name, node, sides)
    ]


def _calls_of_test(path: str, test: str, node: FunctionNode, sides: _Sides) -> Iterator[ExpectedCall]:
    for parameters in _parameter_sets(node):
        known = dict(parameters)

        def evaluate(expression: ast.expr, known: Mapping[str, Any] = known) -> Any:
            return fold(expression, known=known)

        for statement in ast.walk(node):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    try:
                        known[name] = evaluate(value)
                    except NotConstant:
                        continue
        for left, right in sides(node):
            for call, expected in ((left, right), (right, left)):
                expectation = expected_call(call, expected, evaluate, test, path)
                if expectation and expectation.function and all(name for name, _ in expectation.kwargs):
                    yield expectation


def _checked_sides(node: FunctionNode) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a test compares, with calls that it only asserts to be true or false."""
    for inner in ast.walk(node):
        match inner:
            case ast.Assert(test=ast.Call() as call):
                yield call, ast.Constant(True)
            case ast.Assert(test=ast.UnaryOp(op=ast.Not(), operand=ast.Call() as call)):
                yield call, ast.Constant(False)
            case _:
                yield from compared_sides(inner)


def _refused_sides(node: FunctionNode) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a test calls where it waits for an error, with the error's name: the last call of the block."""
    for inner in ast.walk(node):
        match inner:
            case ast.With(
                items=[ast.withitem(context_expr=ast.Call(func=func, args=[error, *_]))],
                body=[*_, ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call)],
            ) if last_name(func) in WAITING_CALLS:
                yield innermost_call(call), ast.Constant(last_name(error))
            case ast.Call(func=func, args=[error, called, *rest], keywords=keywords) if (
                last_name(func) in WAITING_CALLS[:2]
            ):
                yield ast.Call(called, rest, keywords), ast.Constant(last_name(error))


def _parameter_sets(node: FunctionNode) -> list[dict[str, Any]]:
    """The values of `pytest.mark.parametrize`, one set for each test it makes; one empty set where there is none."""
    sets: list[dict[str, Any]] = [{}]
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[_, ast.List() | ast.Tuple() as table, *_]):
                names = argument_names(decorator)
                rows = [_known_values(names, row) for row in table.elts] if names else []
                sets = [{**old, **row} for row in rows for old in sets] or sets
    return sets


def _known_values(names: list[str], row: ast.expr) -> dict[str, Any]:
    values = {}
    for name, value in zip(names, row_values(row, len(names)), strict=False):
        try:
            values[name] = fold(value)
        except NotConstant:
            continue
    return values
