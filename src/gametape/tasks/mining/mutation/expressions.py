"""Mutations inside an expression: a wrong operator, operand, bound, argument or name."""

import ast
from collections.abc import Iterator
from itertools import combinations, pairwise

from gametape.tasks.mining.mutation.scope import MutationEdits, MutationScope

_BOUNDARIES = {ast.Lt: (b"<", b"<="), ast.LtE: (b"<=", b"<"), ast.Gt: (b">", b">="), ast.GtE: (b">=", b">")}
_COMPARISONS = {
    ast.Lt: (b"<", b">"),
    ast.LtE: (b"<=", b">="),
    ast.Gt: (b">", b"<"),
    ast.GtE: (b">=", b"<="),
    ast.Eq: (b"==", b"!="),
    ast.NotEq: (b"!=", b"=="),
    ast.Is: (b"is", b"is not"),
    ast.IsNot: (b"is not", b"is"),
    ast.In: (b"in", b"not in"),
    ast.NotIn: (b"not in", b"in"),
}
_OPERATORS = {
    ast.Add: (b"+", b"-"),
    ast.Sub: (b"-", b"+"),
    ast.Mult: (b"*", b"+"),
    ast.Div: (b"/", b"//"),
    ast.FloorDiv: (b"//", b"%"),
    ast.Mod: (b"%", b"//"),
    ast.Pow: (b"**", b"*"),
    ast.LShift: (b"<<", b">>"),
    ast.RShift: (b">>", b"<<"),
    ast.BitAnd: (b"&", b"|"),
    ast.BitOr: (b"|", b"&"),
}
_ONE_SIDED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod)
_SIMPLE = (ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.Call)


def expression_mutations(scope: MutationScope) -> Iterator[MutationEdits]:
    terms = {
        id(part)
        for node in scope.nodes
        if isinstance(node, ast.BinOp | ast.AugAssign)
        for part in ast.iter_child_nodes(node)
    }
    for node in scope.nodes:
        if isinstance(node, ast.Compare):
            yield from _compared(scope, node)
        elif isinstance(node, ast.BoolOp):
            yield from _joined(scope, node)
        elif isinstance(node, ast.BinOp | ast.AugAssign):
            yield from _computed(scope, node)
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            yield from _decided(scope, node)
        elif isinstance(node, ast.Call):
            yield from _called(scope, node)
        elif isinstance(node, ast.Slice):
            yield from _sliced(scope, node)
        elif isinstance(node, ast.Constant):
            yield from _constant(scope, node, id(node) in terms)
    yield from _wrong_names(scope)
    yield from _wrong_attributes(scope)
    yield from _wrong_keys(scope)


def _compared(scope: MutationScope, node: ast.Compare) -> Iterator[MutationEdits]:
    operands = [node.left, *node.comparators]
    for left, operator, right in zip(operands, node.ops, node.comparators, strict=False):
        for kind, table in (("boundary", _BOUNDARIES), ("comparison", _COMPARISONS)):
            if (pair := table.get(type(operator))) and (edits := scope.between(left, right, *pair)):
                yield MutationEdits(kind, edits)


def _joined(scope: MutationScope, node: ast.BoolOp) -> Iterator[MutationEdits]:
    pair = (b"and", b"or") if isinstance(node.op, ast.And) else (b"or", b"and")
    for left, right in pairwise(node.values):
        if edits := scope.between(left, right, *pair):
            yield MutationEdits("boolean operator", edits)
    for value in (node.values[0], node.values[-1]):
        yield MutationEdits("missing condition", (scope.replaced(node, scope.text(value)),))


def _computed(scope: MutationScope, node: ast.BinOp | ast.AugAssign) -> Iterator[MutationEdits]:
    """Skips operations on strings, lists and tuples, which another operator would make fail at once."""
    left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    if any(_is_sequence(operand) for operand in (left, right)):
        return
    operator, by = _OPERATORS.get(type(node.op), (b"", b""))
    if operator and (edits := scope.between(left, right, operator, by)):
        yield MutationEdits("operator", edits)
    both_simple = isinstance(left, _SIMPLE) and isinstance(right, _SIMPLE)
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ONE_SIDED) and both_simple:
        yield MutationEdits("swapped operands", scope.exchanged(left, right))


def _is_sequence(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_sequence(node.left) or _is_sequence(node.right)
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _decided(scope: MutationScope, node: ast.If | ast.While | ast.IfExp) -> Iterator[MutationEdits]:
    test = node.test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield MutationEdits("removed not", (scope.replaced(test, scope.text(test.operand)),))
    elif isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        yield MutationEdits("negated condition", (scope.replaced(test, b"not " + scope.text(test)),))
    if isinstance(node, ast.IfExp):
        yield MutationEdits("swapped branches", scope.exchanged(node.body, node.orelse))


def _called(scope: MutationScope, node: ast.Call) -> Iterator[MutationEdits]:
    given = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
    if len(given) == len(node.args):
        for argument, other in pairwise(given):
            yield MutationEdits("swapped arguments", scope.exchanged(argument, other))
    name = getattr(node.func, "id", "")
    if name == "range" and given and not isinstance(given[-1], ast.Constant) and len(given) < 3:
        end = given[-1]
        if isinstance(end, _SIMPLE):
            yield MutationEdits("off by one", (scope.replaced(end, scope.text(end) + b" - 1"),))
            yield MutationEdits("off by one", (scope.replaced(end, scope.text(end) + b" + 1"),))
    if name in ("min", "max", "any", "all"):
        by = {"min": b"max", "max": b"min", "any": b"all", "all": b"any"}[name]
        yield MutationEdits("wrong function", (scope.replaced(node.func, by),))
    named = [argument.value for argument in node.keywords if argument.arg]
    for argument, other in combinations(named, 2):
        yield MutationEdits("swapped arguments", scope.exchanged(argument, other))


def _sliced(scope: MutationScope, node: ast.Slice) -> Iterator[MutationEdits]:
    for bound in (node.lower, node.upper):
        if isinstance(bound, ast.Name | ast.Attribute | ast.Call):
            yield MutationEdits("slice bound", (scope.replaced(bound, scope.text(bound) + b" + 1"),))
            yield MutationEdits("slice bound", (scope.replaced(bound, scope.text(bound) + b" - 1"),))
    if node.lower is not None and node.upper is not None and node.step is None:
        yield MutationEdits("slice bound", (scope.replaced(node.lower, b""),))


def _constant(scope: MutationScope, node: ast.Constant, is_term: bool) -> Iterator[MutationEdits]:
    """A term never becomes 0, because nobody writes that by mistake."""
    value = node.value
    if isinstance(value, bool):
        yield MutationEdits("constant", (scope.replaced(node, b"False" if value else b"True"),))
    elif isinstance(value, int) and scope.text(node).isdigit():
        for by in (value + 1, value - 1):
            if by >= is_term:
                yield MutationEdits("off by one", (scope.replaced(node, b"%d" % by),))


def _wrong_names(scope: MutationScope) -> Iterator[MutationEdits]:
    if len(scope.variables) < 2:
        return
    for node in scope.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in scope.variables:
            for other in scope.variables:
                if other != node.id:
                    yield MutationEdits("wrong variable", (scope.replaced(node, other.encode()),))


def _wrong_attributes(scope: MutationScope) -> Iterator[MutationEdits]:
    """Another attribute that the function reads from the same object in the same way: called, or not."""
    called = {id(node.func) for node in scope.nodes if isinstance(node, ast.Call)}
    reads = [
        (scope.text(node.value), id(node) in called, node)
        for node in scope.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name)
    ]
    for owner, is_called, node in reads:
        others = {
            other_node.attr
            for other_owner, other_called, other_node in reads
            if other_owner == owner and other_called == is_called and other_node.attr != node.attr
        }
        for other in sorted(others):
            yield MutationEdits("wrong attribute", (scope.replaced(node, owner + b"." + other.encode()),))


def _wrong_keys(scope: MutationScope) -> Iterator[MutationEdits]:
    keys = [
        key
        for node in scope.nodes
        for key in (
            [node.slice]
            if isinstance(node, ast.Subscript)
            else node.comparators
            if isinstance(node, ast.Compare)
            else []
        )
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and len(key.value) > 0
    ]
    for key in keys:
        for text in sorted({scope.text(other) for other in keys if other.value != key.value}):
            yield MutationEdits("wrong key", (scope.replaced(key, text),))
