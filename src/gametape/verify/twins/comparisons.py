"""Twins of `assert`: another expected value, or the very opposite.

A negation evaluates what the test evaluates and denies it, which contradicts whatever the operands are. `a != b` does
not: a class that overrides `==` may well inherit another `!=`. It stands for `not a == b` only where both sides are
sure to be builtins whose two operators agree.
"""

import ast
import random
import re
from collections.abc import Iterator

from gametape.verify.twins.edit import Edit, Text
from gametape.verify.twins.expectations import changes, equalities, is_pure, side
from gametape.verify.twins.scope import Test

Made = tuple[str, tuple[Edit, ...]]
"""The kind of a twin and its edits."""

_BINDS_TIGHTLY = (ast.Compare, ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant)
_OPPOSITE: dict[type[ast.cmpop], str] = {ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"}
_EXACT = {
    "builtins.list", "builtins.tuple", "builtins.dict", "builtins.set", "builtins.frozenset", "builtins.sorted",
    "builtins.len", "builtins.bool",
}  # fmt: skip
_OPERATOR = re.compile(r"\bnot\s+in\b|\bin\b|\bis\s+not\b|\bis\b|==|!=")


def twins_of_assert(test: Test, statement: ast.stmt, rng: random.Random) -> Iterator[Made]:
    """Twins of one `assert` that is certain to be reached."""
    if not isinstance(statement, ast.Assert) or not test.steady(statement.test):
        return
    claim = statement.test
    for left, right in equalities(test, statement):
        expected = side(test, left, right)
        if expected is not None:
            yield from (("literal", edits) for edits in changes(test, expected, rng))
    if isinstance(claim, ast.Constant):
        return
    opposite = _swapped(test, claim)
    if opposite:
        yield "opposite", opposite
    yield "negation", denied(test.text, claim)


def denied(text: Text, claim: ast.expr) -> tuple[Edit, ...]:
    """Edits that turn an expression into its denial."""
    if isinstance(claim, ast.UnaryOp) and isinstance(claim.op, ast.Not):
        start = text.start(claim)
        blank = text.source[start + 3 : start + 4] == " "
        return (Edit(start, start + 3 + blank, ""),)
    if isinstance(claim, _BINDS_TIGHTLY):
        return (text.before(claim, "not "),)
    return (text.before(claim, "not ("), text.after(claim, ")"))


def _swapped(test: Test, claim: ast.expr) -> tuple[Edit, ...] | None:
    """The edit that puts the opposite operator, where that is the exact negation."""
    if not isinstance(claim, ast.Compare) or len(claim.ops) != 1:
        return None
    left, right, operator = claim.left, claim.comparators[0], type(claim.ops[0])
    if operator in _OPPOSITE:
        new = _OPPOSITE[operator]
    elif operator in {ast.Eq, ast.NotEq} and compares_exactly(test, left, right):
        new = "!=" if operator is ast.Eq else "=="
    else:
        return None
    start, end = test.text.end(left), test.text.start(right)
    between = test.text.source[start:end]
    found = _OPERATOR.search(between)
    if found is None or "#" in between:
        return None
    return (Edit(start + found.start(), start + found.end(), new),)


def compares_exactly(test: Test, left: ast.expr, right: ast.expr) -> bool:
    """Whether `!=` is sure to be the negation of `==` here: both sides are builtins for certain."""
    return _is_exact(test, left) and _is_exact(test, right)


def _is_exact(test: Test, node: ast.expr) -> bool:
    builders = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp)
    return isinstance(node, builders) or is_pure(node) or test.called(node) in _EXACT
