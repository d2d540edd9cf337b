"""Find the expected values of a test: the constants that may change without changing what the test does."""

import ast
import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gametape.syntax.constants import constant_value, is_literal
from gametape.syntax.definitions import FunctionNode
from gametape.syntax.expected_calls import EXACT_EQUALITY_METHODS
from gametape.syntax.source_text import SourceEdit
from gametape.verify.twins.parsed_tests import ParsedTestFile, TestFunction
from gametape.verify.twins.reachability import reached_statements
from gametape.verify.twins.replacement_literals import near_literal, replacement_literal

_SEQUENCES = {"builtins.list", "builtins.tuple", "builtins.sorted"}
_SETS = {"builtins.set", "builtins.frozenset"}
_DICTS = {"builtins.dict", "collections.OrderedDict"}
_VALUES = {
    "textwrap.dedent", "inspect.cleandoc", "decimal.Decimal", "datetime.date", "datetime.datetime", "datetime.time",
    "datetime.timedelta", "pathlib.Path", "pathlib.PurePath", "pathlib.PurePosixPath",
}  # fmt: skip
_TEXT_METHODS = {"strip", "lstrip", "rstrip", "split", "splitlines", "encode", "decode"}
_SHOWN = {"builtins.print", "builtins.repr", "logging.debug", "logging.info"}
_LARGEST_TOLERANCE = 0.1
_DEEPEST = 1


@dataclass(frozen=True)
class ExpectedConstant:
    """A constant inside an expected value, and the values that stand beside it."""

    node: ast.expr
    excluded_values: frozenset[Any] = field(default=frozenset())


def changeable_constants(
    test: TestFunction, node: ast.expr, excluded_values: frozenset[Any] = frozenset()
) -> Iterator[ExpectedConstant]:
    """The constants of which any one, changed, gives a value that equals nothing the old one equals."""
    match node:
        case ast.Constant() if node.value is not None and node.value is not Ellipsis:
            yield ExpectedConstant(node, excluded_values)
        case ast.JoinedStr() if is_literal(node):
            yield ExpectedConstant(node, excluded_values)
        case ast.UnaryOp() if is_literal(node):
            yield from changeable_constants(
                test, node.operand, frozenset(-v for v in excluded_values if isinstance(v, int | float))
            )
        case ast.Set() if is_literal(node):
            yield from _each(test, node.elts)
        case ast.List() | ast.Tuple():
            yield from _each(test, [item for item in node.elts if not isinstance(item, ast.Starred)])
        case ast.Dict() if _keys_differ(node):
            yield from _each(test, node.values)
            pairs = zip(node.keys, node.values, strict=True)
            yield from _each(test, [key for key, value in pairs if key is not None and not _is_nothing(value)])
        case ast.BinOp() if _is_sequence_sum(node):
            yield from changeable_constants(test, node.left, excluded_values)
            yield from changeable_constants(test, node.right, excluded_values)
        case ast.Call():
            yield from _built(test, node)


def _keys_differ(node: ast.Dict) -> bool:
    """Whether all keys are known and no entry hides another."""
    try:
        return len({ast.literal_eval(key) for key in node.keys if key is not None}) == len(node.keys)
    except (ValueError, TypeError):
        return False


def _is_nothing(value: ast.expr) -> bool:
    """Whether a value is zero or empty: a mapping may take such an entry for none at all."""
    return is_literal(value) and not isinstance(value, ast.JoinedStr | ast.BinOp) and not ast.literal_eval(value)


def _each(test: TestFunction, nodes: list[ast.expr]) -> Iterator[ExpectedConstant]:
    values = frozenset(value for node in nodes for value in _scalar(node))
    for node in nodes:
        yield from changeable_constants(test, node, values - frozenset(_scalar(node)))


def _scalar(node: ast.expr) -> Iterator[Any]:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return
    if isinstance(value, str | bytes | int | float | complex):
        yield value


def _is_sequence_sum(node: ast.expr) -> bool:
    """Whether this is a sum of texts or lists, where every part shows in the whole. A sum of numbers hides parts."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and _is_sequence_sum(node.left) and _is_sequence_sum(node.right)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple) and is_literal(node)


def _built(test: TestFunction, call: ast.Call) -> Iterator[ExpectedConstant]:
    """Constants inside calls of the standard library that give different values for different arguments."""
    origin = test.called_name(call)
    values = [word.value for word in call.keywords if word.arg]
    if origin == "pytest.approx":
        if len(call.args) >= 1 and all(_is_tight(argument) for argument in [*call.args[1:], *values]):
            yield from (
                leaf
                for leaf in changeable_constants(test, call.args[0])
                if not isinstance(constant_value(leaf.node), bool)
            )
    elif origin in _SEQUENCES and len(call.args) == 1:
        if isinstance(call.args[0], ast.List | ast.Tuple):
            yield from changeable_constants(test, call.args[0])
    elif origin in _SETS and len(call.args) == 1:
        if isinstance(call.args[0], ast.List | ast.Tuple | ast.Set) and is_literal(call.args[0]):
            yield from changeable_constants(test, call.args[0])
    elif origin in _DICTS:
        if len(call.args) == 1 and not call.keywords and isinstance(call.args[0], ast.Dict):
            yield from changeable_constants(test, call.args[0])
        elif not call.args and len(values) == len(call.keywords):
            yield from _each(test, values)
    elif origin in _VALUES:
        if all(isinstance(argument, ast.Constant | ast.UnaryOp | ast.JoinedStr) for argument in [*call.args, *values]):
            yield from _each(test, [*call.args, *values])
    elif isinstance(call.func, ast.Attribute) and not call.keywords:
        yield from _methods(test, call, call.func)


def _methods(test: TestFunction, call: ast.Call, function: ast.Attribute) -> Iterator[ExpectedConstant]:
    """Constants inside methods of texts that keep them apart."""
    if function.attr == "join" and is_literal(function.value) and len(call.args) == 1:
        if isinstance(call.args[0], ast.List | ast.Tuple):
            yield from changeable_constants(test, call.args[0])
    elif (
        function.attr in _TEXT_METHODS
        and (not call.args or function.attr in {"encode", "decode"})
        and isinstance(function.value, ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call)
    ):
        yield from changeable_constants(test, function.value)


def _is_tight(tolerance: ast.expr) -> bool:
    value = tolerance.value if isinstance(tolerance, ast.Constant) else 1.0
    return value is None or (isinstance(value, int | float) and 0 <= value <= _LARGEST_TOLERANCE)


def value_edits(test: TestFunction, expected: ast.expr, rng: random.Random) -> Iterator[tuple[SourceEdit, ...]]:
    """Edits that each change one constant of an expected value, in a random order; each constant in two ways. Where the
    value has parts, the first edit is one after which they still fit each other."""
    constants = list(changeable_constants(test, expected))
    rng.shuffle(constants)
    for leaf in constants:
        value, is_part = constant_value(leaf.node), leaf.node is not expected or isinstance(leaf.node, ast.Constant)
        if is_part and not (leaf.node is expected and isinstance(value, int)):
            near = near_literal(test.text.text_of(leaf.node), value, rng, leaf.excluded_values)
            if near is not None:
                yield (test.text.replace(leaf.node, near),)
                break
    for leaf in constants * 2:
        new = replacement_literal(
            test.text.text_of(leaf.node), constant_value(leaf.node), rng, leaf.excluded_values, test.constants
        )
        if new is not None:
            yield (test.text.replace(leaf.node, new),)


def expected_side(test: TestFunction, left: ast.expr, right: ast.expr) -> ast.expr | None:
    """Which side of an equality is the expected value; a name stands for the value that it was given."""
    named = [local_expected_value(test, side.id) for side in (right, left) if isinstance(side, ast.Name)]
    sides = [right, left, *(side for side in named if side is not None)]
    holding = [side for side in sides if any(True for _ in changeable_constants(test, side))]
    return next(filter(is_literal, holding), next(iter(holding), None))


def local_expected_value(test: TestFunction, name: str) -> ast.expr | None:
    """The value of a local name that is set once, for certain, and then only compared for equality or shown."""
    values = [
        statement.value
        for statement in reached_statements(test)
        if isinstance(statement, ast.Assign)
        and [target.id for target in statement.targets if isinstance(target, ast.Name)] == [name]
    ]
    if len(values) != 1 or count_bindings(test.node, name) != 1:
        return None
    return values[0] if is_only_compared(test, name) else None


def count_bindings(tree: ast.AST, name: str) -> int:
    """In how many places a name is bound or unbound."""
    stores = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)]
    return len(stores) + sum(isinstance(node, ast.arg) and node.arg == name for node in ast.walk(tree))


@functools.lru_cache(maxsize=512)
def is_only_compared(test: TestFunction, name: str) -> bool:
    """Whether a name is read only to be compared with `==` or to be shown, and compared for certain at least once."""
    harmless: set[int] = set()
    for node in ast.walk(test.node):
        if isinstance(node, ast.Call) and test.called_name(node) in _SHOWN:
            harmless |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.Assert) and node.msg is not None:
            harmless |= {id(inner) for inner in ast.walk(node.msg)}
    compared = _compared(test)
    reads = [n for n in ast.walk(test.node) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    return all(id(n) in compared | harmless for n in reads) and any(id(n) in compared for n in reads)


@functools.lru_cache(maxsize=512)
def _compared(test: TestFunction) -> frozenset[int]:
    """The names, by identity of their nodes, that are held to be equal to something."""
    pairs = [pair for statement in reached_statements(test) for pair in compared_pairs(test, statement)]
    return frozenset(id(side) for pair in pairs for side in pair if isinstance(side, ast.Name))


def compared_pairs(test: TestFunction, statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The pairs that a statement holds to be equal: `assert a == b`, `self.assertEqual(a, b)`, `check(a, b)`."""
    if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Compare):
        compare = statement.test
        if len(compare.ops) == 1 and isinstance(compare.ops[0], ast.Eq) and test.is_deterministic(compare):
            yield compare.left, compare.comparators[0]
    elif (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and test.is_deterministic(statement.value)
    ):
        call = statement.value
        if test.self_method_name(call) in EXACT_EQUALITY_METHODS and len(call.args) >= 2:
            yield call.args[0], call.args[1]
        else:
            yield from ((argument, argument) for argument in expected_arguments(test, call))


def expected_arguments(test: TestFunction, call: ast.Call) -> Iterator[ast.expr]:
    """Arguments of a call that the helper called does nothing with but compare them for equality."""
    helper = called_helper(test, call)
    if helper is None or any(isinstance(argument, ast.Starred) for argument in call.args):
        return
    parameters = [argument.arg for argument in helper.node.args.posonlyargs + helper.node.args.args]
    parameters = parameters[1:] if helper.enclosing_classes else parameters
    pairs = [*zip(parameters, call.args, strict=False), *((word.arg, word.value) for word in call.keywords)]
    for name, value in pairs:
        if name and count_bindings(helper.node, name) == 1 and is_only_compared(helper, name):
            yield value


def called_helper(test: TestFunction, call: ast.Call) -> TestFunction | None:
    """The function of the suite that is called, where the suite shows which one it is."""
    if test.depth > _DEEPEST:
        return None
    method = test.self_method_name(call)
    if method and test.enclosing_classes:
        for statement in test.enclosing_classes[-1].body:
            if isinstance(statement, FunctionNode) and statement.name == method and not statement.decorator_list:
                return (
                    None
                    if statement is test.node
                    else _helper(test.module, statement, test.enclosing_classes, test.depth + 1)
                )
        return None
    if not isinstance(call.func, ast.Name) or call.func.id in test.local_names:
        return None
    helper = test.module.resolve_helper(call.func.id)
    if helper is None or helper[1].decorator_list or helper[1] is test.node:
        return None
    module, node = helper
    return _helper(module, node, (), test.depth + 1)


@functools.lru_cache(maxsize=512)
def _helper(module: ParsedTestFile, node: FunctionNode, owners: tuple[ast.ClassDef, ...], depth: int) -> TestFunction:
    return TestFunction(module, node.name, node, owners, depth)
