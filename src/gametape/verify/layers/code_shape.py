"""The shape of code: its syntax tree without the names of locals, docstrings and annotations; and repeated code.

Two functions of the same shape do the same thing in the same way, whatever their variables are called.
"""

import ast
import functools
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gametape.verify.static_analysis.python_source import Function, child_blocks, docstring

Shape = Counter[tuple[str, str]]
"""How often each kind of node stands directly below each other kind."""

_ANNOTATIONS = ("annotation", "returns", "type_comment", "decorator_list")


def bound_names(node: ast.AST) -> frozenset[str]:
    """The local names of a function: its parameters and what it assigns."""
    names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    return frozenset(names | {arg.arg for arg in ast.walk(node) if isinstance(arg, ast.arg)})


def node_label(node: ast.AST, local: frozenset[str]) -> str:
    """The kind of a node and its own name or value."""
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


def shape_children(node: ast.AST) -> Iterator[ast.AST]:
    """The children of a node that belong to the shape, in order."""
    doc = docstring(node)
    for name, value in ast.iter_fields(node):
        if name not in _ANNOTATIONS:
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST) and not isinstance(child, ast.expr_context) and child is not doc:
                    yield child


def function_shape(function: Function) -> Shape:
    local = bound_names(function)
    shape: Shape = Counter()
    todo: list[tuple[str, ast.AST]] = [("", function)]
    while todo:
        parent, node = todo.pop()
        label = node_label(node, local)
        shape[parent, label] += 1
        todo.extend((label, child) for child in shape_children(node))
    return shape


def similarity(one: Shape, other: Shape) -> float:
    """Dice's coefficient: from 0.0, nothing in common, to 1.0, equal."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0


def fingerprint(statements: Iterable[ast.stmt], local: frozenset[str]) -> str:
    """A sequence of statements as one string, equal for the same shape in the same order."""
    labels: list[str] = []
    todo: list[ast.AST | None] = [*reversed(list(statements))]
    while todo:
        node = todo.pop()
        if node is None:
            labels.append(")")
            continue
        labels += [node_label(node, local), "("]
        todo.append(None)
        todo.extend(reversed(list(shape_children(node))))
    return " ".join(labels)


STATEMENTS = 4
"""The number of equal statements in a row that make a copy."""

_SMALLEST = 40
"""A run whose fingerprint has fewer labels is too small to be a copy."""


@dataclass(frozen=True)
class StatementWindow:
    """A run of statements."""

    file: str
    first: int
    last: int


def find_copies(
    modules: Mapping[str, ast.Module], written: Mapping[str, frozenset[int]]
) -> dict[tuple[str, int], StatementWindow]:
    """Written lines that repeat other code, by file and line, each with the window that it repeats."""
    by_mark: dict[bytes, list[StatementWindow]] = defaultdict(list)
    for file, module in modules.items():
        for mark, first, last in _windows(module):
            by_mark[mark].append(StatementWindow(file, first, last))
    copies: dict[tuple[str, int], StatementWindow] = {}
    for windows in by_mark.values():
        for index, window in enumerate(windows):
            lines = written.get(window.file, frozenset()).intersection(range(window.first, window.last + 1))
            other = windows[0] if index else windows[-1]
            if lines and len(windows) > 1 and not _overlap(window, other):
                copies.update({(window.file, line): other for line in lines})
    return copies


@functools.lru_cache(maxsize=256)
def _windows(module: ast.Module) -> tuple[tuple[bytes, int, int], ...]:
    """Every run of statements in a module: the hash of its fingerprint, first and last line."""
    windows: list[tuple[bytes, int, int]] = []
    todo: list[tuple[ast.AST, frozenset[str]]] = [(module, frozenset())]
    while todo:
        node, local = todo.pop()
        if isinstance(node, Function) and not local:
            local = bound_names(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                windows += _block_windows(block, local)
        todo.extend((child, local) for child in child_blocks(node))
    return tuple(windows)


def _block_windows(block: list[ast.stmt], local: frozenset[str]) -> Iterator[tuple[bytes, int, int]]:
    if len(block) < STATEMENTS:
        return
    marks = [fingerprint([statement], local) if not _repeats_by_nature(statement) else "" for statement in block]
    for start in range(len(block) - STATEMENTS + 1):
        run = marks[start : start + STATEMENTS]
        if all(run) and sum(mark.count(" ") for mark in run) >= _SMALLEST:
            last = block[start + STATEMENTS - 1]
            mark = hashlib.blake2b("\n".join(run).encode("utf-8", "replace"), digest_size=16).digest()
            yield mark, block[start].lineno, last.end_lineno or last.lineno


def _repeats_by_nature(statement: ast.stmt) -> bool:
    """Imports and definitions are no copies; the bodies of definitions are compared separately."""
    return isinstance(statement, ast.Import | ast.ImportFrom | Function | ast.ClassDef)


def _overlap(one: StatementWindow, other: StatementWindow) -> bool:
    return one.file == other.file and one.first <= other.last and other.first <= one.last
