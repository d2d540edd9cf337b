"""Measures of a module, read from its syntax tree: complexity, dead code, and the statements a coverage run can see."""

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
    """Cyclomatic complexity: one more than the number of decisions. Functions inside a function count separately."""
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
    """Line and message of statements after one that always leaves the block, and of branches on a false constant."""
    for node in walk_blocks(module):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            for before, after in itertools.pairwise(block) if isinstance(block, list) else ():
                if isinstance(before, _ENDS) and not _makes_generator(after):
                    yield after.lineno, "is never reached"
                    break
        if isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Constant) and not node.test.value:
            yield node.body[0].lineno, "is never reached"


def unused_variables(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and message of locals that are assigned and never read, in functions without `locals`, `eval` etc."""
    for _, function in functions(module):
        nodes = list(ast.walk(function))
        if any(isinstance(node, ast.Name) and node.id in ("locals", "eval", "exec", "vars") for node in nodes):
            continue
        shared = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
        read = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
        for target in _assigned(function):
            if target.id not in read | shared and not target.id.startswith("_"):
                yield target.lineno, f"`{target.id}` is never used"


def callable_definitions(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of functions that only a use of their name can call.

    Left out: special names, anything with a decorator, and methods of classes with bases, which a base class may call.
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
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.alias):
            names.update(node.name.split("."))
        elif isinstance(node, ast.keyword) and node.arg:
            names.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.update(_WORD.findall(node.value[:_LONGEST_STRING]))
    return frozenset(names)


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
    """Whether the statement is a `yield`: after `return` it makes the function an empty generator."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom)


def traceable_statements(module: ast.Module) -> Iterator[tuple[int, int]]:
    """First and last line of the head of each statement that line coverage can record.

    Left out: docstrings and other lone constants, declarations, code under `TYPE_CHECKING`, and the bodies of functions
    that are only declared.
    """
    todo: list[ast.AST] = [module]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            todo.extend(node.orelse)
            continue
        if isinstance(node, ast.stmt) and not _is_untraceable(node):
            body = getattr(node, "body", None)
            head = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
            yield node.lineno, max(node.lineno, head or node.lineno)
        if isinstance(node, Function) and _is_declaration(node):
            continue
        todo.extend(child_blocks(node))


def _is_untraceable(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Global | ast.Nonlocal | ast.Pass) or (
        isinstance(node, ast.AnnAssign) and node.value is None
    )


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else None
    return name == "TYPE_CHECKING"


def _is_declaration(function: Function) -> bool:
    doc = docstring(function)
    rest = [statement for statement in function.body if statement is not doc]
    return all(_is_untraceable(statement) or _raises_not_implemented(statement) for statement in rest)


def _raises_not_implemented(statement: ast.stmt) -> bool:
    raised = statement.exc if isinstance(statement, ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(name, ast.Name) and name.id == "NotImplementedError"
