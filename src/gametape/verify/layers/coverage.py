"""Which written statements the tests ran."""

import ast
from collections.abc import Iterator

from gametape.verify.tools.source import Function, blocks, docstring


def statements(module: ast.Module) -> Iterator[tuple[int, int]]:
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
        todo.extend(blocks(node))


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
