"""Cyclomatic complexity: one more than the number of decisions in a function."""

import ast
import functools

from gametape.verify.tools.source import Function

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
