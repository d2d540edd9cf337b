"""Twins of `assert`, of unittest's assertion methods and of mock assertions: another expected value, or a negation.

A negation evaluates what the test evaluates and denies it, which contradicts whatever the operands are, but people
seldom write it. The opposite operator reads like any test. `in` and `is` have an exact one. `a != b` and `a >= b` are
exact only where both sides are sure to be builtins: a class may well get two of its operators wrong. So the kinds
`unequal` and `order` refute a test and accuse nobody (see `plan.LENIENT_KINDS`).
"""

import ast
import random
import re
from collections.abc import Iterator

from gametape.syntax.constants import is_literal
from gametape.syntax.definitions import FunctionNode
from gametape.syntax.expected_calls import EXACT_EQUALITY_METHODS
from gametape.syntax.source_text import SourceEdit, SourceText
from gametape.verify.twins.expected_values import compared_pairs, expected_side, value_edits
from gametape.verify.twins.parsed_tests import TestFunction

TwinEdits = tuple[str, tuple[SourceEdit, ...]]
"""The kind of a twin and its edits."""

_BINDS_TIGHTLY = (ast.Compare, ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant)
_OPPOSITE_OPERATOR: dict[type[ast.cmpop], str] = {ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"}
_EXACT = {
    "builtins.list", "builtins.tuple", "builtins.dict", "builtins.set", "builtins.frozenset", "builtins.sorted",
    "builtins.len", "builtins.bool",
}  # fmt: skip
_LENIENT_OPPOSITE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("unequal", "!="), ast.NotEq: ("unequal", "=="), ast.Lt: ("order", ">="), ast.LtE: ("order", ">"),
    ast.Gt: ("order", "<="), ast.GtE: ("order", "<"),
}  # fmt: skip
_OTHER_SINGLETON = {True: "False", False: "True", None: "True"}
_OPERATOR = re.compile(r"\bnot\s+in\b|\bin\b|\bis\s+not\b|\bis\b|==|!=|<=|>=|<|>")


def twins_of_assert(test: TestFunction, statement: ast.stmt, rng: random.Random) -> Iterator[TwinEdits]:
    """Twins of one `assert` that is certain to be reached."""
    if not isinstance(statement, ast.Assert) or not test.is_deterministic(statement.test):
        return
    claim = statement.test
    for left, right in compared_pairs(test, statement):
        expected = expected_side(test, left, right)
        if expected is not None:
            yield from (("literal", edits) for edits in value_edits(test, expected, rng))
    if isinstance(claim, ast.Constant):
        return
    yield from _other_singleton(test, claim)
    yield from _opposite_operator(test, claim)
    asks_for_truth = isinstance(claim, ast.Call | ast.Name | ast.Attribute | ast.Subscript) or (
        isinstance(claim, ast.UnaryOp) and not isinstance(claim.operand, ast.Compare)
    )
    yield "truth" if asks_for_truth else "negation", negating_edits(test.text, claim)


def _other_singleton(test: TestFunction, claim: ast.expr) -> Iterator[TwinEdits]:
    """`is False` for `is True`, and `is True` for `is None`."""
    if isinstance(claim, ast.Compare) and [type(operator) for operator in claim.ops] == [ast.Is]:
        right = claim.comparators[0]
        if isinstance(right, ast.Constant) and (right.value is None or isinstance(right.value, bool)):
            yield "literal", (test.text.replace(right, _OTHER_SINGLETON[right.value]),)


def negating_edits(text: SourceText, claim: ast.expr) -> tuple[SourceEdit, ...]:
    """Edits that turn an expression into its denial."""
    if isinstance(claim, ast.UnaryOp) and isinstance(claim.op, ast.Not):
        start = text.start(claim)
        blank = text.source[start + 3 : start + 4] == " "
        return (SourceEdit(start, start + 3 + blank, ""),)
    if isinstance(claim, _BINDS_TIGHTLY):
        return (text.insert_before(claim, "not "),)
    return (text.insert_before(claim, "not ("), text.insert_after(claim, ")"))


def _opposite_operator(test: TestFunction, claim: ast.expr) -> Iterator[TwinEdits]:
    """The edit that puts the opposite operator, and whether that is the exact negation."""
    if not isinstance(claim, ast.Compare) or len(claim.ops) != 1:
        return
    left, right, operator = claim.left, claim.comparators[0], type(claim.ops[0])
    kind, new = _LENIENT_OPPOSITE.get(operator) or ("opposite", _OPPOSITE_OPERATOR[operator])
    if kind == "unequal" and compares_exactly(test, left, right):
        kind = "opposite"
    start, end = test.text.end(left), test.text.start(right)
    between = test.text.source[start:end]
    match = _OPERATOR.search(between)
    if match is not None and "#" not in between:
        yield kind, (SourceEdit(start + match.start(), start + match.end(), new),)


def compares_exactly(test: TestFunction, left: ast.expr, right: ast.expr) -> bool:
    """Whether `!=` is sure to be the negation of `==` here: both sides are builtins for certain."""
    return _is_exact(test, left) and _is_exact(test, right)


def _is_exact(test: TestFunction, node: ast.expr) -> bool:
    builders = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp)
    return isinstance(node, builders) or is_literal(node) or test.called_name(node) in _EXACT


_PAIRS = [
    ("assertTrue", "assertFalse"), ("assertIn", "assertNotIn"), ("assertIs", "assertIsNot"),
    ("assertIsNone", "assertIsNotNone"), ("assertIsInstance", "assertNotIsInstance"),
    ("assertAlmostEqual", "assertNotAlmostEqual"), ("assertRegex", "assertNotRegex"),
]  # fmt: skip
_OPPOSITE_METHOD = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
_OPERATOR_OF_METHOD = {
    "assertEqual": "==", "assertEquals": "==", "assertNotEqual": "!=", "assertGreater": ">", "assertGreaterEqual": ">=",
    "assertLess": "<", "assertLessEqual": "<=",
}  # fmt: skip
_LENIENT_METHOD = {
    "assertEqual": ("unequal", "assertNotEqual"), "assertEquals": ("unequal", "assertNotEqual"),
    "assertNotEqual": ("unequal", "assertEqual"), "assertGreater": ("order", "assertLessEqual"),
    "assertGreaterEqual": ("order", "assertLess"), "assertLess": ("order", "assertGreaterEqual"),
    "assertLessEqual": ("order", "assertGreater"),
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


def twins_of_method(test: TestFunction, statement: ast.stmt, rng: random.Random) -> Iterator[TwinEdits]:
    """Twins of one `self.assert...(...)` that is certain to be reached."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return
    call = statement.value
    method = test.self_method_name(call)
    if method is None or _is_redefined(test, method) or not test.is_deterministic(call):
        return
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return
    if method in EXACT_EQUALITY_METHODS or (method == "assertAlmostEqual" and _is_tight(call)):
        yield from _other_values(test, call, rng)
    if method in _OPPOSITE_METHOD and call.args:
        yield "opposite", (_renamed(test, call, _OPPOSITE_METHOD[method]),)
    if method in _OPERATOR_OF_METHOD and len(call.args) >= 2:
        yield from _negated_methods(test, call, method)


def _is_redefined(test: TestFunction, method: str) -> bool:
    members = [member for owner in test.enclosing_classes for member in owner.body]
    return any(isinstance(member, FunctionNode) and member.name == method for member in members)


def _is_tight(call: ast.Call) -> bool:
    """Whether the tolerance is known and small."""
    given = {word.arg: word.value for word in call.keywords}
    if len(call.args) > 2:
        given["places"] = call.args[2]
    delta, places = given.get("delta"), given.get("places")
    if delta is not None:
        value = delta.value if isinstance(delta, ast.Constant) else None
        return isinstance(value, int | float) and 0 <= value <= _LARGEST_DELTA
    return places is None or (isinstance(places, ast.Constant) and isinstance(places.value, int) and places.value >= 1)


def _other_values(test: TestFunction, call: ast.Call, rng: random.Random) -> Iterator[TwinEdits]:
    if len(call.args) < 2:
        return
    expected = expected_side(test, call.args[0], call.args[1])
    if expected is not None:
        yield from (("literal", edits) for edits in value_edits(test, expected, rng))


def _renamed(test: TestFunction, call: ast.Call, new: str) -> SourceEdit:
    assert isinstance(call.func, ast.Attribute)
    end = test.text.end(call.func)
    return SourceEdit(end - len(call.func.attr), end, new)


def _negated_methods(test: TestFunction, call: ast.Call, method: str) -> Iterator[TwinEdits]:
    left, right = call.args[:2]
    kind, opposite = _LENIENT_METHOD[method]
    exact = kind == "unequal" and compares_exactly(test, left, right)
    yield "opposite" if exact else kind, (_renamed(test, call, opposite),)
    between = test.text.source[test.text.end(left) : test.text.start(right)]
    if between.count(",") != 1 or "#" in between:
        return
    comma = test.text.end(left) + between.index(",")
    edits = [_renamed(test, call, "assertFalse"), SourceEdit(comma, comma + 1, f" {_OPERATOR_OF_METHOD[method]}")]
    for node in (left, right):
        if isinstance(node, _LOOSE):
            edits += [test.text.insert_before(node, "("), test.text.insert_after(node, ")")]
    yield "negation", tuple(sorted(edits, key=lambda edit: edit.start))


def twins_of_mock(test: TestFunction, statement: ast.stmt) -> Iterator[TwinEdits]:
    """Twins of one `mock.assert_called...(...)` that is certain to be reached."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return
    call = statement.value
    if not isinstance(call.func, ast.Attribute) or not test.is_deterministic(call):
        return
    name, text = call.func.attr, test.text
    start, end = text.end(call.func) - len(name), text.end(call)
    if name in _CALLED:
        yield "mock", (SourceEdit(start, end, "assert_not_awaited()" if "await" in name else "assert_not_called()"),)
    elif name in {"assert_not_called", "assert_not_awaited"}:
        yield "mock", (SourceEdit(start, end, name.replace("_not", "") + "()"),)
