"""Twins of the assertion methods of `unittest`, and of those of mocks."""

import ast
import random
from collections.abc import Iterator

from gametape.verify.twins.comparisons import Made, compares_exactly
from gametape.verify.twins.edit import Edit
from gametape.verify.twins.expectations import EQUALITIES, changes, side
from gametape.verify.twins.scope import Function, Test

_PAIRS = [
    ("assertTrue", "assertFalse"), ("assertIn", "assertNotIn"), ("assertIs", "assertIsNot"),
    ("assertIsNone", "assertIsNotNone"), ("assertIsInstance", "assertNotIsInstance"),
    ("assertAlmostEqual", "assertNotAlmostEqual"), ("assertRegex", "assertNotRegex"),
]  # fmt: skip
_OPPOSITE = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
_OPERATORS = {
    "assertEqual": "==", "assertEquals": "==", "assertNotEqual": "!=", "assertGreater": ">", "assertGreaterEqual": ">=",
    "assertLess": "<", "assertLessEqual": "<=",
}  # fmt: skip
_CALLED = {
    "assert_called", "assert_called_once", "assert_called_with", "assert_called_once_with", "assert_any_call",
    "assert_awaited", "assert_awaited_once", "assert_awaited_with", "assert_awaited_once_with", "assert_any_await",
}  # fmt: skip
_LOOSE = (
    ast.Compare,
    ast.BoolOp,
    ast.IfExp,
    ast.Lambda,
    ast.NamedExpr,
    ast.UnaryOp,
    ast.GeneratorExp,
    ast.Await,
    ast.Yield,
)
_LARGEST_DELTA = 0.4


def twins_of_method(test: Test, statement: ast.stmt, rng: random.Random) -> Iterator[Made]:
    """Twins of one `self.assert...(...)` that is certain to be reached."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return
    call = statement.value
    method = test.method(call)
    if method is None or _is_redefined(test, method) or not test.steady(call):
        return
    if any(isinstance(each, ast.Starred) for each in call.args):
        return
    if method in EQUALITIES or (method == "assertAlmostEqual" and _is_tight(call)):
        yield from _other_values(test, call, rng)
    if method in _OPPOSITE and call.args:
        yield "opposite", (_renamed(test, call, _OPPOSITE[method]),)
    if method in _OPERATORS and len(call.args) >= 2:
        yield from _denials(test, call, method)


def _is_redefined(test: Test, method: str) -> bool:
    return any(isinstance(each, Function) and each.name == method for owner in test.owners for each in owner.body)


def _is_tight(call: ast.Call) -> bool:
    """Whether the tolerance is known and small."""
    given = {each.arg: each.value for each in call.keywords}
    if len(call.args) > 2:
        given["places"] = call.args[2]
    delta, places = given.get("delta"), given.get("places")
    if delta is not None:
        value = delta.value if isinstance(delta, ast.Constant) else None
        return isinstance(value, int | float) and 0 <= value <= _LARGEST_DELTA
    return places is None or (isinstance(places, ast.Constant) and isinstance(places.value, int) and places.value >= 1)


def _other_values(test: Test, call: ast.Call, rng: random.Random) -> Iterator[Made]:
    if len(call.args) < 2:
        return
    expected = side(test, call.args[0], call.args[1])
    if expected is not None:
        yield from (("literal", edits) for edits in changes(test, expected, rng))


def _renamed(test: Test, call: ast.Call, new: str) -> Edit:
    assert isinstance(call.func, ast.Attribute)
    end = test.text.end(call.func)
    return Edit(end - len(call.func.attr), end, new)


def _denials(test: Test, call: ast.Call, method: str) -> Iterator[Made]:
    left, right = call.args[:2]
    if method in {"assertEqual", "assertEquals", "assertNotEqual"} and compares_exactly(test, left, right):
        opposite = "assertEqual" if method == "assertNotEqual" else "assertNotEqual"
        yield "opposite", (_renamed(test, call, opposite),)
    between = test.text.source[test.text.end(left) : test.text.start(right)]
    if between.count(",") != 1 or "#" in between:
        return
    comma = test.text.end(left) + between.index(",")
    edits = [_renamed(test, call, "assertFalse"), Edit(comma, comma + 1, f" {_OPERATORS[method]}")]
    for node in (left, right):
        if isinstance(node, _LOOSE):
            edits += [test.text.before(node, "("), test.text.after(node, ")")]
    yield "negation", tuple(sorted(edits, key=lambda edit: edit.start))


def twins_of_mock(test: Test, statement: ast.stmt) -> Iterator[Made]:
    """Twins of one `mock.assert_called...(...)` that is certain to be reached."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return
    call = statement.value
    if not isinstance(call.func, ast.Attribute) or not test.steady(call):
        return
    name, text = call.func.attr, test.text
    start, end = text.end(call.func) - len(name), text.end(call)
    if name in _CALLED:
        yield "mock", (Edit(start, end, "assert_not_awaited()" if "await" in name else "assert_not_called()"),)
    elif name in {"assert_not_called", "assert_not_awaited"}:
        yield "mock", (Edit(start, end, name.replace("_not", "") + "()"),)
