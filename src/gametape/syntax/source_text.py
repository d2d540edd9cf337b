"""Edits of a source text by character offsets: whatever an edit does not name stays as it was."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

LocatedNode = ast.expr | ast.stmt | ast.keyword


@dataclass(frozen=True)
class SourceEdit:
    """Replaces the characters from `start` up to `end` of a source text."""

    start: int
    end: int
    text: str

    def moved(self, by: int) -> "SourceEdit":
        return SourceEdit(self.start + by, self.end + by, self.text)


def apply_edits(source: str, edits: Iterable[SourceEdit]) -> str:
    """The source after these edits. Raises ValueError where they overlap."""
    parts = []
    done = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < done:
            raise ValueError(f"edits overlap at character {edit.start}: they are not edits of this source")
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

    def start(self, node: LocatedNode) -> int:
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: LocatedNode) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def text_of(self, node: LocatedNode) -> str:
        return self.source[self.start(node) : self.end(node)]

    def replace(self, node: LocatedNode, text: str) -> SourceEdit:
        return SourceEdit(self.start(node), self.end(node), text)

    def insert_before(self, node: LocatedNode, text: str) -> SourceEdit:
        return SourceEdit(self.start(node), self.start(node), text)

    def insert_after(self, node: LocatedNode, text: str) -> SourceEdit:
        return SourceEdit(self.end(node), self.end(node), text)

    def is_first_on_line(self, node: ast.stmt) -> bool:
        """Whether nothing but white space stands before the statement on its line."""
        return not self.source[self._lines[node.lineno - 1] : self.start(node)].strip()

    def line_span(self, first: int, last: int) -> tuple[int, int]:
        """The span of whole lines, numbered from one, both included."""
        end = self._lines[last] if last < len(self._lines) else len(self.source)
        return self._lines[first - 1], end
