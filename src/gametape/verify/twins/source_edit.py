"""Twins as values: spans of a test file and what takes their place."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SourceEdit:
    """Replaces the characters from `start` up to `end` of a source text."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Twin:
    """One way to contradict one test function. Everything outside the edits stays as it was."""

    function: str
    """`test_a` or `TestC::test_m`: as in a test id, without parameters."""
    kind: str
    case: str | None
    """The one case of a parametrised test that turns; None turns all of them."""
    edits: tuple[SourceEdit, ...]


def apply_twins(source: str, twins: Sequence[Twin]) -> str:
    """The source with all these twins in place; at most one for each function."""
    if len({twin.function for twin in twins}) != len(twins):
        raise ValueError("more than one twin for a function: lay at most one on each")
    edits = sorted((edit for twin in twins for edit in twin.edits), key=lambda edit: (edit.start, edit.end))
    parts = []
    done = 0
    for edit in edits:
        if edit.start < done:
            raise ValueError(f"edits overlap at character {edit.start}: these twins are not of this source")
        parts += [source[done : edit.start], edit.text]
        done = edit.end
    return "".join([*parts, source[done:]])


class SourceText:
    """A source text and where the nodes of its syntax tree lie in it, counted in characters."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._lines = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", source))]

    def _offset(self, line: int, column: int) -> int:
        start = self._lines[line - 1]
        end = self._lines[line] if line < len(self._lines) else len(self.source)
        row = self.source[start:end]
        return start + (column if row.isascii() else len(row.encode()[:column].decode()))

    def start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def text_of(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        return self.source[self.start(node) : self.end(node)]

    def replace(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> SourceEdit:
        return SourceEdit(self.start(node), self.end(node), text)

    def insert_before(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> SourceEdit:
        return SourceEdit(self.start(node), self.start(node), text)

    def insert_after(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> SourceEdit:
        return SourceEdit(self.end(node), self.end(node), text)

    def is_first_on_line(self, node: ast.stmt) -> bool:
        """Whether nothing but white space stands before the statement on its line."""
        start = self.start(node)
        return not self.source[self._lines[node.lineno - 1] : start].strip()

    def line_span(self, first: int, last: int) -> tuple[int, int]:
        """The span of whole lines, numbered from one, both included."""
        end = self._lines[last] if last < len(self._lines) else len(self.source)
        return self._lines[first - 1], end
