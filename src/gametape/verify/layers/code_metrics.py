"""Cyclomatic complexity: one more than the number of decisions in a function."""

import ast
import functools
import itertools
import re
from collections.abc import Iterator

from gametape.verify.static_analysis.python_source import Function, child_blocks, docstring, functions, walk_blocks

_DECISIONS = (
    *(ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert),
    *(ast.comprehension, ast.match_case),
)


@functools.lru_cache(maxsize=4096)
def complexity(function: Function) -> int:
    """Functions inside a function are counted on their own."""
    decisions = 1
    todo: list[ast.AST] = list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        if isinstance(node, Function):
            continue
        decisions += isinstance(node, _DECISIONS)
        decisions += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        todo.extend(ast.iter_child_nodes(node))
    return decisions


_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_WORD = re.compile(r"[A-Za-z_]\w*")
_LONGEST_STRING = 1000


def unreachable_statements(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Statements behind one that always leaves the block, and branches of a constant that is false."""
    for node in walk_blocks(module):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            for one, after in itertools.pairwise(block) if isinstance(block, list) else ():
                if isinstance(one, _ENDS) and not _makes_generator(after):
                    yield after.lineno, "is never reached"
                    break
        if isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Constant) and not node.test.value:
            yield node.body[0].lineno, "is never reached"


def unused_variables(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Locals that are assigned by themselves and never read, in functions that do nothing to hide that."""
    for _, function in functions(module):
        inside = list(ast.walk(function))
        if any(isinstance(node, ast.Name) and node.id in ("locals", "eval", "exec", "vars") for node in inside):
            continue
        shared = {name for node in inside if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
        read = {node.id for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
        for target in _assigned(function):
            if target.id not in read | shared and not target.id.startswith("_"):
                yield target.lineno, f"`{target.id}` is never used"


def callable_definitions(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Functions that only a call by name could use, with their line.

    Left out: special names, anything with a decorator, and methods of classes with bases, which may be called by what
    they inherit from.
    """
    inherited = {
        id(inner)
        for node in walk_blocks(module)
        if isinstance(node, ast.ClassDef) and (node.bases or node.keywords or node.decorator_list)
        for inner in node.body
    }
    for _, function in functions(module):
        special = function.name.startswith("__") and function.name.endswith("__")
        if not special and not function.decorator_list and id(function) not in inherited:
            yield function.lineno, function.name


@functools.lru_cache(maxsize=256)
def mentioned_names(module: ast.Module) -> frozenset[str]:
    """Every name that is read, imported or spelled in a string anywhere."""
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.update(node.name.split("."))
        elif isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(_WORD.findall(node.value[:_LONGEST_STRING]))
    return frozenset(found)


def _assigned(function: Function) -> Iterator[ast.Name]:
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, Function | ast.ClassDef):
            continue
        if isinstance(node, ast.Assign):
            yield from (target for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield node.target
        todo.extend(child_blocks(node))


def _makes_generator(node: ast.stmt) -> bool:
    """`return` and then `yield` is how an empty generator is written."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom)


def traceable_statements(module: ast.Module) -> Iterator[tuple[int, int]]:
    """First and last line of each statement's head that leaves a trace when it runs.

    Left out: docstrings and other lone constants, declarations, what stands under `TYPE_CHECKING`, and the bodies of
    functions that only announce themselves.
    """
    todo: list[ast.AST] = [module]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            todo.extend(node.orelse)
            continue
        if isinstance(node, ast.stmt) and not _leaves_no_trace(node):
            body = getattr(node, "body", None)
            head = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
            yield node.lineno, max(node.lineno, head or node.lineno)
        if isinstance(node, Function) and _only_announces(node):
            continue
        todo.extend(child_blocks(node))


def _leaves_no_trace(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Global | ast.Nonlocal | ast.Pass) or (
        isinstance(node, ast.AnnAssign) and node.value is None
    )


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else None
    return name == "TYPE_CHECKING"


def _only_announces(function: Function) -> bool:
    described = docstring(function)
    rest = [statement for statement in function.body if statement is not described]
    return all(_leaves_no_trace(statement) or _refuses(statement) for statement in rest)


def _refuses(statement: ast.stmt) -> bool:
    raised = statement.exc if isinstance(statement, ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(name, ast.Name) and name.id == "NotImplementedError"
