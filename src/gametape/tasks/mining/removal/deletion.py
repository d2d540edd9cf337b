"""Delete functions from a tree: replace their bodies by a stub, or remove them whole. The result looks hand-written."""

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


def stub_edit(source: PythonSource, node: FunctionNode) -> ByteEdit:
    """Replace a body by `raise NotImplementedError`; of generators and coroutines too. The docstring stays.

    Comments between the signature and the first statement, after the last one, and below it at the depth of the body
    are deleted with it, because they explain it.
    """
    rest = body_after_docstring(node.body)
    docstring = node.body[0] if len(rest) < len(node.body) else None
    end = source.end_of_function(node)
    header = header_end(source, node)
    line = _REST_OF_HEADER.match(source.text, header)
    if line is None:
        start = _start(source, rest[0]) if docstring and rest else source.start(node.body[0])
        return ByteEdit(start, end, STUB_BODY)
    first = node.body[0]
    indentation = source.text[source.line_start(_start(source, first)) : _start(source, first)]
    if indentation.strip():
        raise ValueError(f"line {first.lineno}: cannot tell how deep the body of {node.name} stands")
    if docstring is None:
        return ByteEdit(line.end(), end, indentation + STUB_BODY)
    behind = source.end_of_line(source.end(docstring))
    if rest and rest[0].lineno > (docstring.end_lineno or 0) and (newline := NEWLINE.match(source.text, behind)):
        return ByteEdit(newline.end(), end, indentation + STUB_BODY)
    after = source.end(docstring)
    return ByteEdit(after, end, source.newline_at(header) + indentation + STUB_BODY)


def header_end(source: PythonSource, node: FunctionNode) -> int:
    """The offset after the colon. Only commas, brackets and comments are between a signature's last part and it."""
    arguments = node.args
    parts: list[ast.AST] = [
        *(argument for argument in ast.iter_child_nodes(arguments)),
        *getattr(node, "type_params", ()),
        *([node.returns] if node.returns else []),
    ]
    last = max([source.start(node), *(source.end(part) for part in parts)])
    colon = _COLON.match(source.text, last)
    if colon is None:
        raise ValueError(f"line {node.lineno}: the signature of {node.name} has no end")
    return colon.end()


def _start(source: PythonSource, node: ast.stmt) -> int:
    """The offset of a statement, decorators included."""
    line = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
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
    test_paths: Collection[str] = (),
) -> DeletionResult:
    """The tree without these functions.

    `stub` keeps signatures, decorators and docstrings, and replaces the bodies by `raise NotImplementedError`. Every
    byte outside the bodies stays, so imports that only the bodies used stay too: they are a fair hint, like the
    signature, and the solution needs them again.

    `removal` removes whole functions, with their entries in `__all__`, imports of their names in files that are not
    tests, and imports that nothing else used. A function without which a module could not be imported is stubbed
    instead. Raises ValueError for a function that is not there.
    """
    removal = remove_functions(tree, functions, test_paths) if tier == "removal" else None
    removed = removal.removed if removal else frozenset()
    edits: dict[str, list[ByteEdit]] = defaultdict(list, removal.edits if removal else {})
    stubbed = frozenset(functions) - removed
    for function in stubbed:
        source = read_source(tree.files[function.path])
        edit = stub_edit(source, locate_function(source, function))
        others = [other for other in edits[function.path] if other.end <= edit.start or edit.end <= other.start]
        edits[function.path] = [*others, edit]
    files = {path: read_source(tree.files[path]).apply_edits(file_edits) for path, file_edits in edits.items()}
    return DeletionResult(SourceTree({**tree.files, **files}, tree.executable), stubbed, removed)


def locate_function(source: PythonSource, function: Function) -> FunctionNode:
    """The function at its line. A name is not enough: a property and its setter share one."""
    node = source.functions.get(function.line)
    if node is None or node.name != function.qualname.rpartition(".")[2]:
        raise ValueError(f"{function}: there is no such function in this file")
    return node
