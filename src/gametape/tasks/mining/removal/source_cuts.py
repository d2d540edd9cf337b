"""Take definitions, imports and entries of lists out of a text, and leave it as a tidy person would."""

import bisect
import re
from collections import Counter

from gametape.tasks.mining.removal.module_names import (
    ByteRange,
    ExportedName,
    ImportedName,
    ModuleNames,
    StatementSpan,
)
from gametape.tasks.mining.removal.python_source import NEWLINE, ByteEdit, PythonSource, indentation_width

_REST_OF_ENTRY = re.compile(rb"[ \t\f]*,?[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)")
_COMMA = re.compile(rb"[ \t\f]*,[ \t\f]*")
_ANY_COMMA = re.compile(rb"(?:\s|#[^\r\n]*)*,")
_COMMENT = re.compile(rb"[ \t\f]*#")
_INDENTATION = re.compile(rb"[ \t\f]*")
_REST_OF_LINE = re.compile(rb"[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_BLANK = re.compile(rb"[ \t\f]*(\r\n|\r|\n)")


class SourceCuts:
    """What goes from one file. Collected first: whether a block keeps a statement shows only at the end."""

    def __init__(self, source: PythonSource, names: ModuleNames) -> None:
        self._source = source
        self._names = names
        self._definitions: dict[int, ByteRange] = {}
        self._imports: dict[StatementSpan, tuple[tuple[ByteRange, ...], set[int]]] = {}
        self._entries: dict[ByteRange, tuple[ExportedName, set[int]]] = {}

    def cut_definition(self, line: int) -> None:
        """With its decorators, its comments above, and those inside."""
        source = self._source
        node = source.functions[line]
        first = min([line, *(one.lineno for one in node.decorator_list)])
        self._definitions[line] = (source.line_starts[self._comments_above(first) - 1], source.end_of_function(node))

    def cut_import(self, one: ImportedName) -> None:
        _, gone = self._imports.setdefault(one.statement, (one.name_ranges, set()))
        gone.add(one.index)

    def cut_export(self, export: ExportedName) -> None:
        if export.display is not None:
            _, gone = self._entries.setdefault(export.display, (export, set()))
            gone.add(export.index)

    def covers(self, offset: int) -> bool:
        return any(start <= offset < end for start, end in self._definitions.values())

    def edits(self) -> list[ByteEdit]:
        whole = {place for place, (names, gone) in self._imports.items() if len(gone) == len(names)}
        places = {line: self._names.definitions[line].statement for line in self._definitions}
        lost = Counter(place.block for place in [*whole, *places.values()])
        empty = {block for block, number in lost.items() if block and number == self._names.blocks[block]}
        found = []
        file_end = len(self._source.text)
        for line in sorted(places, reverse=True):
            edit = self._without_definition(line, places[line].block, empty, file_end)
            file_end = edit.start if edit.end == file_end and not edit.text else -1
            found.append(edit)
        for place, (names, gone) in sorted(self._imports.items(), key=lambda item: item[0].span):
            if place in whole:
                found.append(self._without_statement(place, empty))
            else:
                found += self._without_entries(names, gone, place.span, is_tuple=False)
        for display, (export, gone) in self._entries.items():
            found += self._without_entries(export.entries, gone, display, export.is_tuple)
        return [edit for edit in found if not self._is_inside_definition(edit)]

    def _comments_above(self, line: int) -> int:
        """The first line of the comments right above a line, at its depth. At the top of a file they are the file's."""
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
        found = _INDENTATION.match(self._source.text, start)
        return indentation_width(found.group()) if found else 0

    def _without_definition(self, line: int, block: int, empty: set[int], file_end: int) -> ByteEdit:
        """The wider of the gaps above and below stays; at the end of the file none does."""
        source, (start, end) = self._source, self._definitions[line]
        if block in empty:
            empty.discard(block)
            indentation = source.text[source.line_starts[line - 1] : source.start(source.functions[line])]
            return ByteEdit(start, end, indentation + b"pass")
        found = NEWLINE.match(source.text, end)
        below = [found.end() if found else end]
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

    def _without_statement(self, place: StatementSpan, empty: set[int]) -> ByteEdit:
        """A statement that shares its line with others leaves `pass` behind."""
        source, (start, end) = self._source, place.span
        line = source.line_start(start)
        rest = _REST_OF_LINE.match(source.text, end)
        if place.block in empty or rest is None or source.text[line:start].strip():
            empty.discard(place.block)
            return ByteEdit(start, end, b"pass")
        return ByteEdit(line, rest.end())

    def _without_entries(
        self, entries: tuple[ByteRange, ...], gone: set[int], whole: ByteRange, is_tuple: bool
    ) -> list[ByteEdit]:
        """Entries between commas: of a display, or of an import."""
        source, text = self._source, self._source.text
        bracketed = text[whole[1] - 1 : whole[1]] in (b")", b"]", b"}")
        kept = [index for index in range(len(entries)) if index not in gone]
        if not kept:
            return [ByteEdit(whole[0] + 1, whole[1] - 1)] if bracketed else [ByteEdit(*whole, b"()")]
        found = []
        tail = entries[-1][1]
        closed = _ANY_COMMA.match(text, tail) is not None and bracketed
        needs_comma = is_tuple and len(kept) == 1 and not closed
        if needs_comma and kept[-1] == len(entries) - 1:
            found.append(ByteEdit(tail, tail, b","))
        for index in sorted(gone):
            start, end = entries[index]
            line = source.line_start(start)
            rest = _REST_OF_ENTRY.match(text, end)
            if bracketed and rest and not text[line:start].strip():
                found.append(ByteEdit(line, rest.end()))
            elif index > kept[-1] and not closed:
                last = [one for one in found if one.start < entries[kept[-1]][1]]
                return [*last, ByteEdit(entries[kept[-1]][1], tail, b"," if needs_comma else b"")]
            else:
                comma = _COMMA.match(text, end)
                found.append(ByteEdit(start, comma.end() if comma else end))
        return found

    def _is_inside_definition(self, edit: ByteEdit) -> bool:
        return any(start < edit.start and edit.end < end for start, end in self._definitions.values())
