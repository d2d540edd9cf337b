"""Read source text that may be hostile: reading takes bounded time and never raises."""

import ast
import functools
import io
import tokenize
from collections.abc import Iterator

from gametape.core.task import Task
from gametape.record.source_tree import SourceTree, is_under
from gametape.syntax.source import parse_or_none

MOST_BYTES = 1_000_000
"""Larger files are not parsed: a parser may take a thousand times their size."""

_ENCODINGS = frozenset({"utf-8", "utf-8-sig", "ascii", "iso-8859-1", "iso-8859-15", "cp1252"})
"""Encodings that agree with ASCII and decode in linear time (`punycode` does not)."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def decode_source(content: bytes) -> str | None:
    """The text as Python would decode it, with `\n` as line end; None if it cannot or should not be decoded."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        if encoding not in _ENCODINGS or len(content) > MOST_BYTES:
            return None
        return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except (SyntaxError, ValueError, LookupError):
        return None


@functools.lru_cache(maxsize=256)
def parse_source(content: bytes) -> ast.Module | None:
    """The syntax tree, which is shared and must not be changed. None if the content does not parse."""
    return parse_or_none(decode_source(content))


def own_sources(task: Task, tree: SourceTree) -> SourceTree:
    """The declared sources of a tree, without test files among them."""
    return tree.only({path for path in tree.under(task.source_paths) if not is_under(path, task.test_paths)})


def is_python(path: str) -> bool:
    return path.endswith((".py", ".pyi"))


def docstring(node: ast.AST) -> ast.stmt | None:
    """The statement that is the node's docstring."""
    if isinstance(node, Scope) and node.body and isinstance(node.body[0], ast.Expr):
        value = node.body[0].value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return node.body[0]
    return None


def child_blocks(node: ast.AST) -> Iterator[ast.AST]:
    """The children of a node that are no expressions: statements, handlers, cases."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr | ast.expr_context):
            yield child


def walk_blocks(node: ast.AST) -> Iterator[ast.AST]:
    """A node and everything below it except expressions. Iterative, since nesting may be deep."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(child_blocks(node))


@functools.lru_cache(maxsize=256)
def functions(module: ast.Module) -> tuple[tuple[str, Function], ...]:
    """Every function with its dotted name."""
    named: list[tuple[str, Function]] = []
    todo: list[tuple[str, ast.AST]] = [("", module)]
    while todo:
        prefix, node = todo.pop()
        for child in child_blocks(node):
            if isinstance(child, Function):
                named.append((prefix + child.name, child))
            todo.append((f"{prefix}{child.name}." if isinstance(child, Function | ast.ClassDef) else prefix, child))
    return tuple(named)


def code_lines(content: bytes) -> frozenset[int]:
    """Numbers of the lines that hold code: no blank lines, comments or docstrings.

    Of a file that is not Python, or does not parse, these are the lines that are neither blank nor comments.
    """
    module = parse_source(content)
    if module is None:
        lines = enumerate(stripped_lines(content), 1)
        return frozenset(number for number, line in lines if line and not line.startswith("#"))
    line_numbers: set[int] = set()
    todo: list[ast.AST] = [module]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.stmt | ast.expr | ast.excepthandler | ast.arg | ast.keyword):
            line_numbers.update((node.lineno, node.end_lineno or node.lineno))
        doc = docstring(node)
        todo.extend(child for child in ast.iter_child_nodes(node) if child is not doc)
        if doc is not None and isinstance(node, Scope) and not isinstance(node, ast.Module):
            # the last line of a definition that consists of its docstring is no code
            line_numbers.discard(doc.end_lineno or doc.lineno)
    return frozenset(line_numbers)


def stripped_lines(content: bytes) -> list[str]:
    """Lines without the white space around them."""
    text = decode_source(content)
    if text is None:
        text = content[:MOST_BYTES].decode("utf-8", errors="replace")
    return [line.strip() for line in text.split("\n")]
