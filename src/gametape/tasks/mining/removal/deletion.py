"""Cut functions out of a tree, so that a person could have left it that way."""

import ast
import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.removal.python_source import (
    NEWLINE,
    ByteEdit,
    FunctionNode,
    PythonSource,
    body_after_docstring,
    read_source,
)
from gametape.tasks.mining.removal.whole_functions import remove_functions

STUB_BODY = b"raise NotImplementedError"

_COLON = re.compile(rb"(?:[^:#]|#[^\r\n]*)*:")
_REST_OF_HEADER = re.compile(rb"[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)")


def stub_edit(source: PythonSource, node: FunctionNode, docstrings: bool) -> ByteEdit:
    """A generator or a coroutine gets the same body: it then refuses when called, or when awaited.

    Comments between the signature and the first statement, behind the last one, and below it at the depth of the
    body go with the body; they explain what is no longer there.
    """
    rest = body_after_docstring(node.body)
    kept = node.body[0] if docstrings and len(rest) < len(node.body) else None
    end = source.end_of_function(node)
    header = header_end(source, node)
    line = _REST_OF_HEADER.match(source.text, header)
    if line is None:
        start = _start(source, rest[0]) if kept and rest else source.start(node.body[0])
        return ByteEdit(start, end, STUB_BODY)
    first = node.body[0]
    indentation = source.text[source.line_start(_start(source, first)) : _start(source, first)]
    if indentation.strip():
        raise ValueError(f"line {first.lineno}: cannot tell how deep the body of {node.name} stands")
    if kept is None:
        return ByteEdit(line.end(), end, indentation + STUB_BODY)
    behind = source.end_of_line(source.end(kept))
    if rest and rest[0].lineno > (kept.end_lineno or 0) and (found := NEWLINE.match(source.text, behind)):
        return ByteEdit(found.end(), end, indentation + STUB_BODY)
    after = source.end(kept)
    return ByteEdit(after, end, source.newline_at(header) + indentation + STUB_BODY)


def header_end(source: PythonSource, node: FunctionNode) -> int:
    """Behind the colon. Between the last part of a signature and its colon stand commas, brackets and comments."""
    arguments = node.args
    parts: list[ast.AST] = [
        *(one for one in ast.iter_child_nodes(arguments)),
        *getattr(node, "type_params", ()),
        *([node.returns] if node.returns else []),
    ]
    last = max([source.start(node), *(source.end(part) for part in parts)])
    found = _COLON.match(source.text, last)
    if found is None:
        raise ValueError(f"line {node.lineno}: the signature of {node.name} has no end")
    return found.end()


def _start(source: PythonSource, node: ast.stmt) -> int:
    """With the decorators of a definition."""
    line = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
    return source.offset_at(line, node.col_offset)


Tier = Literal["stub", "removal"]


@dataclass(frozen=True)
class DeletionResult:
    tree: SourceTree
    stubbed: frozenset[Function]
    removed: frozenset[Function]


def delete_functions(
    tree: SourceTree,
    functions: Collection[Function],
    tier: Tier,
    docstrings: bool = True,
    test_paths: Collection[str] = (),
) -> DeletionResult:
    """The tree without these functions.

    `stub` keeps signatures, decorators and, if so wished, docstrings, and puts `raise NotImplementedError` for the
    bodies. Every byte outside the bodies stays, so imports stay that only the bodies used: they name the tools of
    the solution, which is a fair hint where the signature is given too, and whoever solves the task needs them again.

    `removal` takes whole functions, with what speaks of them: entries of `__all__`, imports of their names in files
    that are not tests, and imports nothing else used. A function without which a module could no longer be imported
    is stubbed instead. Raises ValueError for a function that is not there.
    """
    removal = remove_functions(tree, functions, test_paths) if tier == "removal" else None
    removed = removal.removed if removal else frozenset()
    edits: dict[str, list[ByteEdit]] = defaultdict(list, removal.edits if removal else {})
    stubbed = frozenset(functions) - removed
    for function in stubbed:
        source = read_source(tree.files[function.path])
        edit = stub_edit(source, locate_function(source, function), docstrings)
        others = [one for one in edits[function.path] if one.end <= edit.start or edit.end <= one.start]
        edits[function.path] = [*others, edit]
    files = {path: read_source(tree.files[path]).apply_edits(found) for path, found in edits.items()}
    return DeletionResult(SourceTree({**tree.files, **files}, tree.executable), stubbed, removed)


def locate_function(source: PythonSource, function: Function) -> FunctionNode:
    """The function at its path and line; names say too little, a property and its setter share one."""
    node = source.functions.get(function.line)
    if node is None or node.name != function.qualname.rpartition(".")[2]:
        raise ValueError(f"{function}: there is no such function in this file")
    return node
