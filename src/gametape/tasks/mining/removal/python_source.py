"""A Python file as bytes and as a syntax tree, with the byte offsets that connect them.

Edits splice the text, so everything outside an edit stays byte for byte: line endings, encoding, form feeds, a missing
newline at the end.
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

from gametape.syntax.source import parse

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

NEWLINE = re.compile(rb"\r\n|\r|\n")
_REST_OF_STATEMENT = re.compile(rb"(?:[ \t\f;]|\\(?:\r\n|\r|\n))*(?:#[^\r\n]*)?")
_EMPTY_OR_COMMENT = re.compile(rb"([ \t\f]*)(#[^\r\n]*)?(\r\n|\r|\n|\Z)")


class NotPythonError(Exception):
    """A file that this Python cannot parse."""


@dataclass(frozen=True)
class ByteEdit:
    """Replace the bytes of `PythonSource.text` from `start` to `end`."""

    start: int
    end: int
    text: bytes = b""


@dataclass(frozen=True, eq=False)
class PythonSource:
    """`text` is UTF-8 without a byte-order mark, whatever `encoding` the file has: syntax trees count UTF-8 bytes."""

    text: bytes
    module: ast.Module
    encoding: str

    @functools.cached_property
    def line_starts(self) -> list[int]:
        """The offset of each line. As for Python, form feeds and other separators do not end a line."""
        return [0, *(newline.end() for newline in NEWLINE.finditer(self.text))]

    @functools.cached_property
    def functions(self) -> dict[int, FunctionNode]:
        """Functions at module level or in classes, by the line of their `def`."""
        return {node.lineno: node for node in _outer_functions(self.module.body)}

    def offset_at(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + column

    def start(self, node: Any) -> int:
        """The offset of any node that has a position."""
        return self.offset_at(node.lineno, node.col_offset)

    def end(self, node: Any) -> int:
        return self.offset_at(node.end_lineno, node.end_col_offset)

    def line_start(self, offset: int) -> int:
        return self.line_starts[bisect.bisect_right(self.line_starts, offset) - 1]

    def newline_at(self, offset: int) -> bytes:
        """The newline of the line at an offset, for a line that is added."""
        newline = NEWLINE.search(self.text, offset) or NEWLINE.search(self.text)
        return newline.group() if newline else b"\n"

    def end_of_line(self, offset: int) -> int:
        """The end of a statement with the rest of its line: a semicolon, a comment, a continuation."""
        rest = _REST_OF_STATEMENT.match(self.text, offset)
        return rest.end() if rest else offset

    def end_of_function(self, node: FunctionNode) -> int:
        """The end of a function, with the comments below its last statement that are indented deeper than its `def`."""
        end = self.end_of_line(self.end(node))
        newline = NEWLINE.match(self.text, end)
        position = newline.end() if newline else len(self.text)
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
        for edit in sorted(edits, key=lambda item: (item.start, item.end)):
            if edit.start < position:
                raise ValueError(f"two edits of one place, at byte {edit.start}")
            parts += [self.text[position : edit.start], edit.text]
            position = edit.end
        text = b"".join([*parts, self.text[position:]])
        return text if self.encoding == "utf-8" else text.decode("utf-8").encode(self.encoding)


@functools.lru_cache(maxsize=256)
def read_source(content: bytes) -> PythonSource:
    """Parse the bytes of a file. Raises `NotPythonError` if they cannot be parsed."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
        return PythonSource(text.encode("utf-8"), parse_module(text), encoding)
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError) as problem:
        raise NotPythonError(str(problem)) from problem


@functools.lru_cache(maxsize=64)
def source_from_text(text: str) -> PythonSource:
    """Parse a decoded text; its encoding declaration is ignored."""
    try:
        return PythonSource(text.encode("utf-8"), parse_module(text), "utf-8")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise NotPythonError(str(problem)) from problem


def parse_module(text: str) -> ast.Module:
    return parse(text.removeprefix(codecs.BOM_UTF8.decode()))


def indentation_width(indentation: bytes) -> int:
    """The width of an indentation as Python counts it: tabs go to columns of eight, a form feed resets the count."""
    return len(indentation.rpartition(b"\f")[2].expandtabs(8))


def body_after_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return body[1:] if is_text else body


def inner_blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement, including those of its handlers and cases."""
    for part in ("body", "orelse", "finalbody"):
        block = getattr(node, part, None)
        if isinstance(block, list) and block:
            yield block
    for part in ("handlers", "cases"):
        for inner in getattr(node, part, ()):
            yield inner.body


def _outer_functions(body: list[ast.stmt]) -> Iterator[FunctionNode]:
    for node in body:
        if isinstance(node, FunctionNode):
            yield node
        else:
            for block in inner_blocks(node):
                yield from _outer_functions(block)
