"""Find the statements of a test that are certain to run when it passes, and that fail the test if they fail."""

import ast
import functools
from collections.abc import Iterator

from gametape.syntax.definitions import FunctionNode
from gametape.syntax.names import is_standard, names_in
from gametape.verify.twins.parsed_tests import ParsedTestFile, TestFunction

_GUARDS = {
    "pytest.raises", "pytest.deprecated_call", "pytest.RaisesExc", "pytest.RaisesGroup",
    "contextlib.suppress", "contextlib.ExitStack", "contextlib.AsyncExitStack",
}  # fmt: skip
_QUIET_FIXTURES = {"tmp_path", "tmpdir", "monkeypatch", "capsys", "caplog", "recwarn", "tmp_path_factory"}
_LOOKING = {"enumerate", "len", "sorted", "list", "tuple", "set", "zip", "reversed", "print", "sum", "max", "min"}
_QUIET_METHODS = {"subTest", "assertWarns", "assertWarnsRegex", "assertLogs"}


def find_tests(module: ParsedTestFile, wanted: frozenset[str] | None) -> Iterator[TestFunction]:
    """The test functions of a file that twins may be made of: all named `test...`, or those that are wanted."""
    marks = [node for name, values in module.assigned_values.items() if name == "pytestmark" for node in values]
    if any(not _keeps_failures(module, mark) for mark in marks):
        return
    functions = list(_functions(module.tree.body, (), conditional=False))
    names = [name for name, _, _, _ in functions]
    for name, node, owners, conditional in functions:
        is_unique = names.count(name) == 1
        is_wanted = name in wanted if wanted is not None else node.name.startswith("test")
        decorators = [*node.decorator_list, *(decorator for owner in owners for decorator in owner.decorator_list)]
        keeps_failures = all(_keeps_failures(module, decorator) for decorator in decorators)
        if is_wanted and is_unique and not conditional and keeps_failures:
            yields = [inner for inner in walk_own_scope(node) if isinstance(inner, ast.Yield | ast.YieldFrom)]
            if not yields:
                yield TestFunction(module, name, node, owners)


def _functions(
    body: list[ast.stmt], owners: tuple[ast.ClassDef, ...], conditional: bool
) -> Iterator[tuple[str, FunctionNode, tuple[ast.ClassDef, ...], bool]]:
    for statement in body:
        if isinstance(statement, FunctionNode):
            yield "::".join([*(owner.name for owner in owners), statement.name]), statement, owners, conditional
        elif isinstance(statement, ast.ClassDef):
            yield from _functions(statement.body, (*owners, statement), conditional)
        elif isinstance(statement, ast.If | ast.Try):
            inside = [inner for part in ("body", "orelse", "finalbody") for inner in getattr(statement, part, [])]
            yield from _functions(inside, owners, conditional=True)


def _keeps_failures(module: ParsedTestFile, decorator: ast.expr) -> bool:
    """Whether a decorator or mark leaves a failing body a failing test."""
    if isinstance(decorator, ast.List | ast.Tuple):
        return all(_keeps_failures(module, item) for item in decorator.elts)
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(target, ast.Name) and target.id in module.assigned_values:
        values = module.assigned_values[target.id]
        return all(_keeps_failures(module, value) for value in values if value is not decorator)
    origin = module.resolve(target)
    if origin is None or "xfail" in origin or "expectedFailure" in origin:
        return False
    return is_standard(origin)


def walk_own_scope(tree: ast.AST) -> Iterator[ast.AST]:
    """What lies below a node, without the bodies of functions and classes defined there."""
    for child in ast.iter_child_nodes(tree):
        yield child
        if not isinstance(child, FunctionNode | ast.Lambda | ast.ClassDef):
            yield from walk_own_scope(child)


@functools.lru_cache(maxsize=512)
def reached_statements(test: TestFunction) -> tuple[ast.stmt, ...]:
    """The statements, in order, that run whenever the real test passes, and whose failure fails the test."""
    filtered = any(test.called_name(node) in {"hypothesis.assume", "hypothesis.reject"} for node in ast.walk(test.node))
    return () if filtered else tuple(_walk(test, test.node.body))


def _walk(test: TestFunction, body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if _body_always_runs(test, statement):
            yield from _walk(test, getattr(statement, "body", []))
        if isinstance(statement, ast.Raise) or _may_leave(statement):
            return


def _body_always_runs(test: TestFunction, statement: ast.stmt) -> bool:
    """Whether the body of a compound statement is certain to run, and its failure certain to come out."""
    if isinstance(statement, ast.With):
        return all(_lets_failures_through(test, item.context_expr) for item in statement.items)
    if isinstance(statement, ast.For):
        return runs_at_least_once(test, statement.iter) and not _may_leave(statement)
    return isinstance(statement, ast.Try) and not statement.handlers and not _leaves(statement.finalbody)


def _leaves(body: list[ast.stmt]) -> bool:
    return any(_may_leave(statement) for statement in body)


def _may_leave(statement: ast.stmt) -> bool:
    """Whether control may jump out of the statement to somewhere else than the next one (or, in a loop, skip parts)."""
    jumps = (ast.Return, ast.Break, ast.Continue)
    if isinstance(statement, FunctionNode | ast.ClassDef):
        return False
    return isinstance(statement, jumps) or any(isinstance(node, jumps) for node in walk_own_scope(statement))


def _lets_failures_through(test: TestFunction, manager: ast.expr) -> bool:
    """Whether a context manager is known to let a failure inside it through: code under test might swallow it."""
    if test.self_method_name(manager) in _QUIET_METHODS:
        return True
    target = manager.func if isinstance(manager, ast.Call) else manager
    root = next(names_in(target), None)
    if root in _QUIET_FIXTURES and root in {argument.arg for argument in test.node.args.args}:
        return True
    origin = test.resolve(target)
    return is_standard(origin) and origin not in _GUARDS


def runs_at_least_once(test: TestFunction, iterable: ast.expr) -> bool:
    """Whether a loop over this is certain to run its body."""
    if isinstance(iterable, ast.List | ast.Tuple | ast.Set):
        return any(not isinstance(item, ast.Starred) for item in iterable.elts)
    if isinstance(iterable, ast.Dict):
        return bool(iterable.keys) and None not in iterable.keys
    if isinstance(iterable, ast.Constant):
        return isinstance(iterable.value, str | bytes) and bool(iterable.value)
    if isinstance(iterable, ast.Name):
        value = single_assigned_value(test, iterable.id)
        return value is not None and not isinstance(value, ast.Name) and runs_at_least_once(test, value)
    if isinstance(iterable, ast.Call) and not iterable.keywords:
        return _call_runs_once(test, iterable)
    return False


def _call_runs_once(test: TestFunction, call: ast.Call) -> bool:
    origin = test.called_name(call)
    if origin == "builtins.range" and all(isinstance(argument, ast.Constant | ast.UnaryOp) for argument in call.args):
        try:
            return len(range(*(int(ast.literal_eval(argument)) for argument in call.args))) > 0
        except (ValueError, TypeError):
            return False
    if origin in {"builtins.enumerate", "builtins.sorted", "builtins.list", "builtins.zip", "builtins.reversed"}:
        return bool(call.args) and all(runs_at_least_once(test, argument) for argument in call.args)
    if isinstance(call.func, ast.Attribute) and call.func.attr in {"items", "keys", "values"} and not call.args:
        mapping = call.func.value
        value = single_assigned_value(test, mapping.id) if isinstance(mapping, ast.Name) else mapping
        return isinstance(value, ast.Dict) and runs_at_least_once(test, value)
    return False


@functools.lru_cache(maxsize=512)
def single_assigned_value(test: TestFunction, name: str) -> ast.expr | None:
    """The value of a name of the test or its file that is set in one place and changed nowhere else by name."""
    inside = [node for node in ast.walk(test.node) if _binds(node, name)]
    around = [node for node in ast.walk(test.module.tree) if _binds(node, name)]
    bindings = inside or around
    if len(bindings) != 1 or name in test.module.imports:
        return None
    holder = test.node.body if inside else test.module.tree.body
    for statement in ast.walk(ast.Module(holder, [])):
        if isinstance(statement, ast.Assign) and statement.targets == bindings:
            used = [node for node in ast.walk(test.module.tree) if _reaches_into(node, name)]
            return None if used else statement.value
    return None


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.arg) and node.arg == name


def _reaches_into(node: ast.AST, name: str) -> bool:
    """Whether a node may change what the name holds: `name.append(...)`, `name[0] = ...`, `shrink(name)`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
        return node.attr not in {"items", "keys", "values", "copy", "get", "count", "index", "split", "splitlines"}
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name:
        return not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Call) and any(
        isinstance(argument, ast.Name) and argument.id == name for argument in node.args
    ):
        return not (isinstance(node.func, ast.Name) and node.func.id in _LOOKING)
    return False
