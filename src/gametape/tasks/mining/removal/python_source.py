"""A Python file in three forms at once: its bytes, its syntax tree, and the way from one to the other.

Edits are splices of text, so whatever an edit does not name stays as it was, byte for byte: line endings, encoding,
form feeds, the missing newline at the end.
"""

import ast
import bisect
import codecs
import functools
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

NEWLINE = re.compile(rb"\r\n|\r|\n")
_REST_OF_STATEMENT = re.compile(rb"(?:[ \t\f;]|\\(?:\r\n|\r|\n))*(?:#[^\r\n]*)?")
_EMPTY_OR_COMMENT = re.compile(rb"([ \t\f]*)(#[^\r\n]*)?(\r\n|\r|\n|\Z)")


class NotPythonError(Exception):
    """A file that this Python cannot parse."""


@dataclass(frozen=True)
class ByteEdit:
    """Replace what stands from `start` to `end`, in bytes of `Source.text`."""

    start: int
    end: int
    text: bytes = b""


@dataclass(frozen=True, eq=False)
class PythonSource:
    """The offsets of a syntax tree count UTF-8, whatever the file is written in; so `text` is UTF-8, without a mark."""

    text: bytes
    module: ast.Module
    encoding: str

    @functools.cached_property
    def line_starts(self) -> list[int]:
        """Where lines begin. Python counts no form feed and no exotic separator as the end of one."""
        return [0, *(found.end() for found in NEWLINE.finditer(self.text))]

    @functools.cached_property
    def functions(self) -> dict[int, FunctionNode]:
        """Functions at module level or in classes, by the line of their `def`."""
        return {node.lineno: node for node in _outer_functions(self.module.body)}

    def offset_at(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + column

    def start(self, node: Any) -> int:
        """Of anything in a syntax tree that has a place."""
        return self.offset_at(node.lineno, node.col_offset)

    def end(self, node: Any) -> int:
        return self.offset_at(node.end_lineno, node.end_col_offset)

    def line_start(self, offset: int) -> int:
        return self.line_starts[bisect.bisect_right(self.line_starts, offset) - 1]

    def newline_at(self, offset: int) -> bytes:
        """How the line at an offset ends, for a line that joins it."""
        found = NEWLINE.search(self.text, offset) or NEWLINE.search(self.text)
        return found.group() if found else b"\n"

    def end_of_line(self, offset: int) -> int:
        """The end of a statement with what stands behind it on its line: a semicolon, a comment, a continuation."""
        found = _REST_OF_STATEMENT.match(self.text, offset)
        return found.end() if found else offset

    def end_of_function(self, node: FunctionNode) -> int:
        """With the comments below its last statement that stand deeper than its `def`."""
        end = self.end_of_line(self.end(node))
        found = NEWLINE.match(self.text, end)
        position = found.end() if found else len(self.text)
        depth = indentation_width(self.text[self.line_starts[node.lineno - 1] : self.start(node)])
        while position < len(self.text) and (line := _EMPTY_OR_COMMENT.match(self.text, position)):
            if line[2] is not None:
                if indentation_width(line[1]) <= depth:
                    break
                end = line.end(2)
            position = line.end()
        return end

    def apply_edits(self, edits: Iterable[ByteEdit]) -> bytes:
        """The file's bytes, in its own encoding, after these edits. They must not overlap."""
        parts, position = [], 0
        for edit in sorted(edits, key=lambda one: (one.start, one.end)):
            if edit.start < position:
                raise ValueError(f"two edits of one place, at byte {edit.start}")
            parts += [self.text[position : edit.start], edit.text]
            position = edit.end
        text = b"".join([*parts, self.text[position:]])
        return text if self.encoding == "utf-8" else text.decode("utf-8").encode(self.encoding)


@functools.lru_cache(maxsize=256)
def read_source(content: bytes) -> PythonSource:
    """Raises NotPythonError where it cannot be parsed."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
        return PythonSource(text.encode("utf-8"), parse_module(text), encoding)
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError) as problem:
        raise NotPythonError(str(problem)) from problem


@functools.lru_cache(maxsize=64)
def source_from_text(text: str) -> PythonSource:
    """Of a text that somebody has decoded already, whatever it says of its encoding."""
    try:
        return PythonSource(text.encode("utf-8"), parse_module(text), "utf-8")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise NotPythonError(str(problem)) from problem


def parse_module(text: str) -> ast.Module:
    return ast.parse(text.removeprefix(codecs.BOM_UTF8.decode()))


def indentation_width(indentation: bytes) -> int:
    """How deep Python takes this to be: tabs go to columns of eight, a form feed begins anew."""
    return len(indentation.rpartition(b"\f")[2].expandtabs(8))


def body_after_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return body[1:] if is_text else body


def inner_blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement, of its handlers and cases too."""
    for part in ("body", "orelse", "finalbody"):
        block = getattr(node, part, None)
        if isinstance(block, list) and block:
            yield block
    for part in ("handlers", "cases"):
        for one in getattr(node, part, ()):
            yield one.body


def _outer_functions(body: list[ast.stmt]) -> Iterator[FunctionNode]:
    for node in body:
        if isinstance(node, FunctionNode):
            yield node
        else:
            for block in inner_blocks(node):
                yield from _outer_functions(block)
