"""What visible tests give away: calls with the values they expect, read from the syntax of the tests."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gametape.redteam.missing_functions import FunctionNode


@dataclass(frozen=True)
class ExpectedCall:
    """A call in a visible test, its arguments, and the value it is compared with. All literals."""

    function: str
    """The last part of the name that is called."""
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    expected: Any
    test: str
    """The test function, with its class: the end of its node id, without parameters."""
    path: str

    def bind(self, parameters: list[str]) -> dict[str, Any] | None:
        """The arguments by parameter name; None if they do not fit."""
        if len(self.args) > len(parameters) or any(name not in parameters for name, _ in self.kwargs):
            return None
        return {**dict(zip(parameters, self.args, strict=False)), **dict(self.kwargs)}


def extract_expected_calls(path: str, source: str | bytes) -> list[ExpectedCall]:
    """Every pair of a test file, in the order in which the tests run them."""
    return [pair for test, node in _tests(ast.parse(source)) for pair in _pairs(path, test, node)]


def _tests(module: ast.Module) -> Iterator[tuple[str, FunctionNode]]:
    for node in module.body:
        if isinstance(node, FunctionNode):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}::{each.name}", each) for each in node.body if isinstance(each, FunctionNode))


def _pairs(path: str, test: str, node: FunctionNode) -> Iterator[ExpectedCall]:
    for known in _parameter_sets(node):
        names = dict(known)
        for statement in ast.walk(node):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if found := _value(value, names):
                    names[name] = found[0]
        for left, right in _comparisons(node):
            for call, other in ((left, right), (right, left)):
                if isinstance(call, ast.Call) and (expected := _value(other, names)):
                    pair = _pair(path, test, call, expected[0], names)
                    if pair:
                        yield pair


def _comparisons(node: FunctionNode) -> Iterator[tuple[ast.expr, ast.expr]]:
    for each in ast.walk(node):
        match each:
            case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right])):
                yield left, right
            case ast.Assert(test=ast.Call() as call):
                yield call, ast.Constant(True)
            case ast.Assert(test=ast.UnaryOp(op=ast.Not(), operand=ast.Call() as call)):
                yield call, ast.Constant(False)
            case ast.Call(func=ast.Attribute(attr="assertEqual" | "assertAlmostEqual"), args=[left, right]):
                yield left, right


def _pair(path: str, test: str, call: ast.Call, expected: Any, names: dict[str, Any]) -> ExpectedCall | None:
    match call.func:
        case ast.Name(id=function) | ast.Attribute(attr=function):
            args = [_value(argument, names) for argument in call.args]
            kwargs = [(keyword.arg, _value(keyword.value, names)) for keyword in call.keywords]
            if all(args) and all(name and value for name, value in kwargs):
                given = tuple((str(name), value[0]) for name, value in kwargs if value)
                return ExpectedCall(function, tuple(value[0] for value in args if value), given, expected, test, path)
    return None


def _value(node: ast.expr, names: dict[str, Any]) -> tuple[Any] | None:
    """The value of a literal or of a known name, boxed so that None can be told from nothing."""
    if isinstance(node, ast.Name):
        return (names[node.id],) if node.id in names else None
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("approx") and node.args:
        return _value(node.args[0], names)
    try:
        return (ast.literal_eval(node),)
    except (ValueError, TypeError):
        return None


def _parameter_sets(node: FunctionNode) -> list[dict[str, Any]]:
    """The values of `pytest.mark.parametrize`, one set for each test it makes; one empty set where there is none."""
    sets: list[dict[str, Any]] = [{}]
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[names, ast.List() | ast.Tuple() as values, *_]):
                rows = [*_rows(names, values.elts)]
                sets = [{**old, **row} for row in rows for old in sets] or sets
    return sets


def _rows(names: ast.expr, values: list[ast.expr]) -> Iterator[dict[str, Any]]:
    try:
        given = ast.literal_eval(names)
    except ValueError:
        return
    wanted = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    for value in values:
        cells: list[ast.expr]
        match value:
            case ast.Call(func=ast.Attribute(attr="param"), args=cells):
                pass
            case ast.Tuple(elts=cells) | ast.List(elts=cells) if len(wanted) > 1:
                pass
            case _:
                cells = [value]
        found = [(name, _value(cell, {})) for name, cell in zip(wanted, cells, strict=False)]
        yield {name: boxed[0] for name, boxed in found if boxed}
