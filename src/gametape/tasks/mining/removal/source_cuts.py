"""Cut definitions, imports and entries of `__all__` out of a file, and leave tidy text."""

import bisect
import re
from collections import Counter

from gametape.tasks.mining.removal.module_names import ByteRange, ExportedName, ImportedName, ModuleNames, StatementSpan
from gametape.tasks.mining.removal.python_source import NEWLINE, ByteEdit, PythonSource, indentation_width

_REST_OF_ENTRY = re.compile(rb"[ \t\f]*,?[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)")
_COMMA = re.compile(rb"[ \t\f]*,[ \t\f]*")
_ANY_COMMA = re.compile(rb"(?:\s|#[^\r\n]*)*,")
_COMMENT = re.compile(rb"[ \t\f]*#")
_INDENTATION = re.compile(rb"[ \t\f]*")
_REST_OF_LINE = re.compile(rb"[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_BLANK = re.compile(rb"[ \t\f]*(\r\n|\r|\n)")


class SourceCuts:
    """The cuts of one file. They are collected first, because only all of them tell whether a block becomes empty."""

    def __init__(self, source: PythonSource, names: ModuleNames) -> None:
        self._source = source
        self._names = names
        self._definitions: dict[int, ByteRange] = {}
        self._imports: dict[StatementSpan, tuple[tuple[ByteRange, ...], set[int]]] = {}
        self._entries: dict[ByteRange, tuple[ExportedName, set[int]]] = {}

    def cut_definition(self, line: int) -> None:
        """Cut a definition with its decorators, the comments above and those inside."""
        source = self._source
        node = source.functions[line]
        first = min([line, *(decorator.lineno for decorator in node.decorator_list)])
        self._definitions[line] = (source.line_starts[self._comments_above(first) - 1], source.end_of_function(node))

    def cut_import(self, imported: ImportedName) -> None:
        _, gone = self._imports.setdefault(imported.statement, (imported.name_ranges, set()))
        gone.add(imported.index)

    def cut_export(self, export: ExportedName) -> None:
        if export.display is not None:
            _, gone = self._entries.setdefault(export.display, (export, set()))
            gone.add(export.index)

    def covers(self, offset: int) -> bool:
        return any(start <= offset < end for start, end in self._definitions.values())

    def edits(self) -> list[ByteEdit]:
        whole = {statement for statement, (names, gone) in self._imports.items() if len(gone) == len(names)}
        statements = {line: self._names.definitions[line].statement for line in self._definitions}
        lost = Counter(statement.block for statement in [*whole, *statements.values()])
        empty = {block for block, number in lost.items() if block and number == self._names.blocks[block]}
        edits = []
        file_end = len(self._source.text)
        for line in sorted(statements, reverse=True):
            edit = self._without_definition(line, statements[line].block, empty, file_end)
            file_end = edit.start if edit.end == file_end and not edit.text else -1
            edits.append(edit)
        for statement, (names, gone) in sorted(self._imports.items(), key=lambda item: item[0].span):
            if statement in whole:
                edits.append(self._without_statement(statement, empty))
            else:
                edits += self._without_entries(names, gone, statement.span, is_tuple=False)
        for display, (export, gone) in self._entries.items():
            edits += self._without_entries(export.entries, gone, display, export.is_tuple)
        return [edit for edit in edits if not self._is_inside_definition(edit)]

    def _comments_above(self, line: int) -> int:
        """The first line of the comments directly above a line, at its depth. At the top of a file they stay."""
        source, first = self._source, line
        depth = self._depth(line)
        while (
            first > 1 and _COMMENT.match(source.text, source.line_starts[first - 2]) and self._depth(first - 1) == depth
        ):
            first -= 1
        return first if first > 1 else line

    def _depth(self, line: int) -> int:
        return self._depth_at(self._source.line_starts[line - 1])

    def _depth_at(self, start: int) -> int:
        indentation = _INDENTATION.match(self._source.text, start)
        return indentation_width(indentation.group()) if indentation else 0

    def _without_definition(self, line: int, block: int, empty: set[int], file_end: int) -> ByteEdit:
        """Of the blank lines above and below, the longer run stays; at the end of the file none does."""
        source, (start, end) = self._source, self._definitions[line]
        if block in empty:
            empty.discard(block)
            indentation = source.text[source.line_starts[line - 1] : source.start(source.functions[line])]
            return ByteEdit(start, end, indentation + b"pass")
        newline = NEWLINE.match(source.text, end)
        below = [newline.end() if newline else end]
        while blank := _BLANK.match(source.text, below[-1]):
            below.append(blank.end())
        above = [start]
        index = bisect.bisect_left(source.line_starts, start)
        while index and _BLANK.match(source.text, source.line_starts[index - 1]):
            index -= 1
            above.append(source.line_starts[index])
        if below[0] <= file_end <= below[-1]:
            return ByteEdit(above[-1], file_end)
        is_first = len(above) == 1 and self._depth_at(below[-1]) == self._depth(line)
        return ByteEdit(start, below[-1] if is_first else below[min(len(above), len(below)) - 1])

    def _without_statement(self, statement: StatementSpan, empty: set[int]) -> ByteEdit:
        """A statement that shares its line with others leaves `pass` behind."""
        source, (start, end) = self._source, statement.span
        line = source.line_start(start)
        rest = _REST_OF_LINE.match(source.text, end)
        if statement.block in empty or rest is None or source.text[line:start].strip():
            empty.discard(statement.block)
            return ByteEdit(start, end, b"pass")
        return ByteEdit(line, rest.end())

    def _without_entries(
        self, entries: tuple[ByteRange, ...], gone: set[int], whole: ByteRange, is_tuple: bool
    ) -> list[ByteEdit]:
        """Cut entries between commas, of a display or of an import."""
        source, text = self._source, self._source.text
        bracketed = text[whole[1] - 1 : whole[1]] in (b")", b"]", b"}")
        remaining = [index for index in range(len(entries)) if index not in gone]
        if not remaining:
            return [ByteEdit(whole[0] + 1, whole[1] - 1)] if bracketed else [ByteEdit(*whole, b"()")]
        edits = []
        tail = entries[-1][1]
        closed = _ANY_COMMA.match(text, tail) is not None and bracketed
        needs_comma = is_tuple and len(remaining) == 1 and not closed
        if needs_comma and remaining[-1] == len(entries) - 1:
            edits.append(ByteEdit(tail, tail, b","))
        for index in sorted(gone):
            start, end = entries[index]
            line = source.line_start(start)
            rest = _REST_OF_ENTRY.match(text, end)
            if bracketed and rest and not text[line:start].strip():
                edits.append(ByteEdit(line, rest.end()))
            elif index > remaining[-1] and not closed:
                last = [edit for edit in edits if edit.start < entries[remaining[-1]][1]]
                return [*last, ByteEdit(entries[remaining[-1]][1], tail, b"," if needs_comma else b"")]
            else:
                comma = _COMMA.match(text, end)
                edits.append(ByteEdit(start, comma.end() if comma else end))
        return edits

    def _is_inside_definition(self, edit: ByteEdit) -> bool:
        return any(start < edit.start and edit.end < end for start, end in self._definitions.values())
