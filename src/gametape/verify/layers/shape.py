"""The shape of code: its syntax tree without the names of locals, without docstrings and annotations.

Two functions of the same shape do the same thing in the same way, whatever they call their variables.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from gametape.verify.tools.source import Function, docstring

Shape = Counter[tuple[str, str]]
"""How often each kind of node stands directly below each other kind."""

_ANNOTATIONS = ("annotation", "returns", "type_comment", "decorator_list")


def bound_names(node: ast.AST) -> frozenset[str]:
    """Names that are a function's own: parameters and what it assigns."""
    names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    return frozenset(names | {arg.arg for arg in ast.walk(node) if isinstance(arg, ast.arg)})


def label(node: ast.AST, local: frozenset[str]) -> str:
    """What a node says by itself."""
    kind = type(node).__name__
    if isinstance(node, ast.Name):
        return f"{kind} {'local' if node.id in local else node.id}"
    if isinstance(node, ast.Attribute):
        return f"{kind} {node.attr}"
    if isinstance(node, ast.Constant):
        return f"{type(node.value).__name__} {hash(node.value)}"  # to write a large number out may be refused
    if isinstance(node, ast.keyword):
        return f"{kind} {node.arg}"
    return kind


def children(node: ast.AST) -> Iterator[ast.AST]:
    """What counts below a node, in order."""
    described = docstring(node)
    for name, value in ast.iter_fields(node):
        if name not in _ANNOTATIONS:
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST) and not isinstance(child, ast.expr_context) and child is not described:
                    yield child


def shape(function: Function) -> Shape:
    local = bound_names(function)
    found: Shape = Counter()
    todo: list[tuple[str, ast.AST]] = [("", function)]
    while todo:
        above, node = todo.pop()
        name = label(node, local)
        found[above, name] += 1
        todo.extend((name, child) for child in children(node))
    return found


def similarity(one: Shape, other: Shape) -> float:
    """From 0.0, nothing in common, to 1.0, the same (Dice's coefficient)."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0


def fingerprint(statements: Iterable[ast.stmt], local: frozenset[str]) -> str:
    """A sequence of statements as one string, equal for the same shape in the same order."""
    words: list[str] = []
    todo: list[ast.AST | None] = [*reversed(list(statements))]
    while todo:
        node = todo.pop()
        if node is None:
            words.append(")")
            continue
        words += [label(node, local), "("]
        todo.append(None)
        todo.extend(reversed(list(children(node))))
    return " ".join(words)
