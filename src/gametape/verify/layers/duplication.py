"""Repeated code: runs of statements that have the same shape as others, in what was written and in the whole tree."""

import ast
import functools
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gametape.verify.layers.shape import bound_names, fingerprint
from gametape.verify.tools.source import Function, blocks

STATEMENTS = 4
"""So many statements in a row are a copy; fewer are a habit."""

_SMALLEST = 40
"""A run with fewer words than this says too little to be a copy."""


@dataclass(frozen=True)
class Window:
    """A run of statements."""

    file: str
    first: int
    last: int


def copies(modules: Mapping[str, ast.Module], written: Mapping[str, frozenset[int]]) -> dict[tuple[str, int], Window]:
    """Written lines that repeat other code, by file and line, each with the place it repeats."""
    places: dict[bytes, list[Window]] = defaultdict(list)
    for file, module in modules.items():
        for mark, first, last in _windows(module):
            places[mark].append(Window(file, first, last))
    found: dict[tuple[str, int], Window] = {}
    for windows in places.values():
        for index, window in enumerate(windows):
            mine = written.get(window.file, frozenset()).intersection(range(window.first, window.last + 1))
            other = windows[0] if index else windows[-1]
            if mine and len(windows) > 1 and not _overlap(window, other):
                found.update({(window.file, line): other for line in mine})
    return found


@functools.lru_cache(maxsize=256)
def _windows(module: ast.Module) -> tuple[tuple[bytes, int, int], ...]:
    """Every run of statements in a module: its mark, first and last line."""
    found: list[tuple[bytes, int, int]] = []
    todo: list[tuple[ast.AST, frozenset[str]]] = [(module, frozenset())]
    while todo:
        node, local = todo.pop()
        if isinstance(node, Function) and not local:
            local = bound_names(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                found += _of_block(block, local)
        todo.extend((child, local) for child in blocks(node))
    return tuple(found)


def _of_block(block: list[ast.stmt], local: frozenset[str]) -> Iterator[tuple[bytes, int, int]]:
    if len(block) < STATEMENTS:
        return
    marks = [fingerprint([statement], local) if not _is_plain(statement) else "" for statement in block]
    for start in range(len(block) - STATEMENTS + 1):
        run = marks[start : start + STATEMENTS]
        if all(run) and sum(mark.count(" ") for mark in run) >= _SMALLEST:
            last = block[start + STATEMENTS - 1]
            mark = hashlib.blake2b("\n".join(run).encode("utf-8", "replace"), digest_size=16).digest()
            yield mark, block[start].lineno, last.end_lineno or last.lineno


def _is_plain(statement: ast.stmt) -> bool:
    """Imports and definitions repeat by nature; what is inside definitions is looked at by itself."""
    return isinstance(statement, ast.Import | ast.ImportFrom | Function | ast.ClassDef)


def _overlap(one: Window, other: Window) -> bool:
    return one.file == other.file and one.first <= other.last and other.first <= one.last
