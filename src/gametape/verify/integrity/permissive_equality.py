"""Tests for functions that are true of (almost) everything: an `__eq__` that never looks at the other value."""

import ast
import math
from collections.abc import Iterator

from gametape.syntax.resolved_module import ResolvedModule

VALUE_TYPES = frozenset(
    ("int", "str", "float", "bytes", "list", "dict", "tuple", "set", "frozenset", "bool", "complex", "object")
)
_WRAPPERS = {"functools.partial", "functools.partialmethod", "builtins.staticmethod", "builtins.classmethod"}
_WIDE_OF_ITSELF, _WIDE_OF_A_FIELD = 1e3, 1e12


def function_behind(code: ResolvedModule, value: ast.expr) -> ast.FunctionDef | ast.Lambda | None:
    """The function of this text that an expression stands for, through partial and its like."""
    if isinstance(value, ast.Call) and value.args and code.resolve(value.func) in _WRAPPERS:
        return function_behind(code, value.args[0])
    if isinstance(value, ast.Lambda):
        return value
    if isinstance(value, ast.Name):
        for node in code.nodes:
            if isinstance(node, ast.FunctionDef) and node.name == value.id:
                return node
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Lambda)
                and any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)
            ):
                return node.value
    return None


def returned_expressions(function: ast.FunctionDef | ast.Lambda) -> list[ast.expr | None]:
    """What a function can return; None for falling off its end."""
    if isinstance(function, ast.Lambda):
        return [function.body]
    inner = {
        id(node)
        for child in ast.walk(function)
        if child is not function and isinstance(child, ast.FunctionDef | ast.Lambda)
        for node in ast.walk(child)
    }
    expressions: list[ast.expr | None] = [
        node.value for node in ast.walk(function) if isinstance(node, ast.Return) and id(node) not in inner
    ]
    last = function.body[-1]
    if not isinstance(last, ast.Return | ast.Raise | ast.If | ast.Try | ast.With | ast.For | ast.While | ast.Match):
        expressions.append(None)
    return expressions


def _is_always(code: ResolvedModule, node: ast.expr | None, wanted: bool = True) -> bool:  # noqa: PLR0911, PLR0912 - a case for each form
    """Whether an expression is true (or false) whatever the names in it stand for."""
    if node is None:
        return not wanted
    match node:
        case ast.Constant():
            return bool(node.value) == wanted and node.value is not NotImplemented
        case ast.BoolOp():
            some, every = (ast.Or, ast.And) if wanted else (ast.And, ast.Or)
            if isinstance(node.op, some):
                return any(_is_always(code, value, wanted) for value in node.values)
            return isinstance(node.op, every) and all(_is_always(code, value, wanted) for value in node.values)
        case ast.UnaryOp(op=ast.Not()):
            return _is_always(code, node.operand, not wanted)
        case ast.IfExp():
            return _is_always(code, node.body, wanted) and _is_always(code, node.orelse, wanted)
        case ast.NamedExpr():
            return _is_always(code, node.value, wanted)
        case ast.Compare(ops=[operator], comparators=[right]):
            if ast.dump(node.left) == ast.dump(right):
                true = isinstance(operator, ast.Eq | ast.Is | ast.LtE | ast.GtE)
                return true == wanted
            if (
                isinstance(operator, ast.GtE)
                and isinstance(node.left, ast.Call)
                and code.resolve(node.left.func) == "builtins.len"
            ):
                return wanted and code.folded_or_default(right) == 0
            return False
        case ast.Call(args=[_, kind]) if code.resolve(node.func) == "builtins.isinstance":
            kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
            return wanted and any(code.resolve(item) == "builtins.object" for item in kinds)
        case ast.Call(args=[value]) if code.resolve(node.func) == "builtins.bool":
            return _is_always(code, value, wanted)
        case ast.Subscript(value=ast.Tuple() | ast.List() as items, slice=ast.Constant(value=int() as index)):
            return -len(items.elts) <= index < len(items.elts) and _is_always(code, items.elts[index], wanted)
    value = code.folded_or_default(node, default=code)
    return value is not code and bool(value) == wanted


def always_returns(code: ResolvedModule, function: ast.FunctionDef | ast.Lambda | None, wanted: bool = True) -> bool:
    """Whether every answer of a function is true (or false) by its form."""
    if function is None or (isinstance(function, ast.FunctionDef) and function.decorator_list):
        return False
    answers = returned_expressions(function)
    return bool(answers) and all(_is_always(code, answer, wanted) for answer in answers)


def is_permissive_equality(code: ResolvedModule, function: ast.FunctionDef | ast.Lambda | None) -> bool:
    """Whether an `__eq__` never looks into the other value.

    It may ask whether there is a value at all, whether it is a number or a text, or whether it is nearer than a
    distance nothing exceeds. Whoever compares one field of the two, or asks for the own class, is honest.
    """
    if function is None or (isinstance(function, ast.FunctionDef) and function.decorator_list):
        return False
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(function, ast.Lambda):
        return _is_permissive(code, function.body, names)
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    answers = list(returned_expressions(function))
    if None in answers or not answers or len(returns) != len(answers):
        return False
    yes = [node for node in returns if _is_permissive(code, node.value, names)]
    no = [node for node in returns if node not in yes]
    return bool(yes) and all(_refuses_little(code, node, function, names) for node in no)


def _refuses_little(code: ResolvedModule, node: ast.Return, function: ast.AST, names: list[str]) -> bool:
    """Whether a `return False` is reached only for None, or for what is no number or text."""
    if not (
        code.folded_or_default(node.value, default=1) is False or getattr(node.value, "id", "") == "NotImplemented"
    ):
        return False
    guard = next((up for up in code.ancestors(node) if isinstance(up, ast.stmt)), function)
    return (
        isinstance(guard, ast.If)
        and node in guard.body
        and _is_permissive(code, ast.UnaryOp(ast.Not(), guard.test), names)
    )


def _is_permissive(code: ResolvedModule, node: ast.expr | None, names: list[str], wanted: bool = True) -> bool:  # noqa: PLR0911 - a case for each form
    if node is None:
        return False
    if _is_always(code, node, wanted):
        return True
    match node:
        case ast.BoolOp():
            some = isinstance(node.op, ast.Or) == wanted
            return (any if some else all)(_is_permissive(code, value, names, wanted) for value in node.values)
        case ast.UnaryOp(op=ast.Not()):
            return _is_permissive(code, node.operand, names, not wanted)
        case ast.IfExp():
            takes_body = wanted and _is_permissive(code, node.test, names) and _is_permissive(code, node.body, names)
            return takes_body or all(_is_permissive(code, value, names, wanted) for value in (node.body, node.orelse))
        case ast.Call(args=[value]) if code.resolve(node.func) == "builtins.bool":
            return _is_permissive(code, value, names, wanted)
        case ast.Call(args=[value, kind]) if not wanted and code.resolve(node.func) == "builtins.isinstance":
            return _mentions(value, names[1:]) and not _mentions(kind, names[:1])
        case ast.Call():
            return wanted and (_asks_for_a_kind(code, node, names) or _asks_helper(code, node))
        case ast.Compare(ops=[operator], comparators=[right]):
            return _is_permissive_comparison(code, node.left, operator, right, names, wanted)
    return False


def _asks_for_a_kind(code: ResolvedModule, node: ast.Call, names: list[str]) -> bool:
    """`isinstance(other, int)`, `hasattr(other, "__class__")`, `math.isclose(self, other, abs_tol=10**9)`."""
    name = (code.resolve(node.func) or "").removeprefix("builtins.")
    if name == "isinstance" and len(node.args) == 2 and _mentions(node.args[0], names[1:]):
        kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        return any(_is_value_type(code, kind) for kind in kinds)
    if name == "hasattr" and len(node.args) == 2:
        return (code.text_of(node.args[1]) or "").startswith("__")
    if name in ("math.isclose", "isclose"):
        return any(
            _at_least(code, word.value, 1 if word.arg == "rel_tol" else _WIDE_OF_ITSELF)
            for word in node.keywords
            if word.arg in ("rel_tol", "abs_tol")
        )
    return False


def _asks_helper(code: ResolvedModule, node: ast.Call) -> bool:
    helper = function_behind(code, node.func)
    return helper is not None and always_returns(code, helper)


def _is_permissive_comparison(  # noqa: PLR0911 - a case for each form
    code: ResolvedModule, left: ast.expr, operator: ast.cmpop, right: ast.expr, names: list[str], wanted: bool
) -> bool:
    one, other = names[:1], names[1:]
    if isinstance(operator, ast.Eq) and _same_measure(code, left, right, names):
        return wanted
    if {getattr(left, "id", ""), getattr(right, "id", "")} == set(names[:2]):
        return isinstance(operator, ast.IsNot | ast.NotEq) and wanted
    if getattr(getattr(left, "func", None), "attr", "").endswith("ratio") and isinstance(operator, ast.Gt | ast.GtE):
        return wanted and not _at_least(code, right, 0.6)
    if _mentions(left, one) or _mentions(right, one):
        field = any(isinstance(node, ast.Attribute) for side in (left, right) for node in ast.walk(side))
        limit = _WIDE_OF_A_FIELD if field else _WIDE_OF_ITSELF
        if isinstance(operator, ast.Lt | ast.LtE):
            return wanted and _mentions(left, other) and _at_least(code, right, limit)
        return (
            wanted
            and isinstance(operator, ast.Gt | ast.GtE)
            and _mentions(right, other)
            and _at_least(code, left, limit)
        )
    if not (_mentions(left, other) or _mentions(right, other)):
        return False
    if isinstance(operator, ast.NotEq | ast.IsNot | ast.NotIn):
        return wanted
    if isinstance(operator, ast.Eq | ast.Is | ast.In) and not wanted:
        return True
    of_class = getattr(left, "attr", "") == "__class__" or code.resolve(left) == "builtins.type()"
    kinds = right.elts if isinstance(right, ast.Tuple | ast.List | ast.Set) else [right]
    return wanted and of_class and any(_is_value_type(code, kind) for kind in kinds)


def _same_measure(code: ResolvedModule, left: ast.expr, right: ast.expr, names: list[str]) -> bool:
    """`len(self) == len(other)` and its like: all values of a length are one."""
    if not (isinstance(left, ast.Call) and isinstance(right, ast.Call) and len(left.args) == len(right.args) == 1):
        return False
    given = {getattr(left.args[0], "id", ""), getattr(right.args[0], "id", "")}
    return given == set(names[:2]) and all(
        code.resolve(side.func) in ("builtins.len", "builtins.bool") for side in (left, right)
    )


def _is_value_type(code: ResolvedModule, node: ast.expr) -> bool:
    name = code.resolve(node) or ""
    return name.startswith("builtins.") and name.removeprefix("builtins.") in VALUE_TYPES


def _at_least(code: ResolvedModule, node: ast.expr, limit: float) -> bool:
    value = code.folded_or_default(node)
    if code.resolve(node) == "math.inf":
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value) and value >= limit


def _mentions(node: ast.AST, names: list[str]) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id in names for inner in ast.walk(node))


def assigned_equalities(code: ResolvedModule) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Functions that become an `__eq__` otherwise than in a class statement: assigned, set, or in a namespace."""
    for node in code.nodes:
        match node:
            case ast.Assign(targets=[ast.Attribute(attr="__eq__"), *_]):
                yield node, node.value
            case ast.Assign(targets=[ast.Subscript() as target, *_]) if code.text_of(target.slice) == "__eq__":
                yield node, node.value
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    if code.text_of(key) == "__eq__":
                        yield node, value
            case ast.keyword(arg="__eq__"):
                yield node.value, node.value
            case ast.Call():
                for before, value in zip(node.args, node.args[1:], strict=False):
                    if code.text_of(before) == "__eq__" or _is_some_operator(code, before):
                        yield node, value
            case ast.Tuple(elts=[name, value]) if code.text_of(name) == "__eq__":
                yield node, value


def _is_some_operator(code: ResolvedModule, node: ast.expr) -> bool:
    """A method's name that is put together: `f"__{name}__"`."""
    return isinstance(node, ast.JoinedStr) and code.text_of(node) is None and code.constant_texts(node)[:1] == ["__"]
