"""Trim test files for the agent: remove the held-out tests and change nothing else."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import replace

from gametape.syntax.definitions import Definition, blocks, first_line
from gametape.syntax.parametrization import RowsNode
from gametape.syntax.pytest_ids import literal_for_id
from gametape.syntax.source_text import SourceEdit, SourceText
from gametape.syntax.suite_files import SourcePosition, TestFile
from gametape.tasks.mining.held_out.param_tables import ParamTable, TableUse
from gametape.tasks.mining.held_out.removable_tests import SuiteCut, TestSuite

_WITHOUT_TESTS = frozenset(("object", "TestCase", "IsolatedAsyncioTestCase", "ABC"))
_COMMA = re.compile(r"#[^\r\n]*|,")
_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?=[\r\n])")
_CLOSING = re.compile(r"(?:\s*\))*")
_BLANKS = re.compile(r"[ \t]*")
_LONGEST_LINE = 100


def trim_suite(suite: TestSuite, cuts: Collection[SuiteCut]) -> dict[str, bytes | None]:
    """The files that change when these cuts are made; None for those that are deleted.

    A file is deleted if no test of it is left and no other file imports it. Helpers, imports and data stay.
    """
    cut_set = frozenset(cuts)
    removed_ids = frozenset[str]().union(*(unit.ids for unit in suite.units if unit.cuts <= cut_set))
    left = {test.partition("::")[0] for test in suite.ids if test not in removed_ids}
    emptied = {test.partition("::")[0] for test in removed_ids} - left - suite.files.imported
    edits: dict[str, list[SourceEdit]] = {}
    for path, edit in _edits(suite, cut_set):
        edits.setdefault(path, []).append(edit)
    changed = {path: _spliced(suite.files.parsed[path].text.source, file_edits) for path, file_edits in edits.items()}
    return {path: None if path in emptied else changed[path].encode() for path in {*changed, *emptied}}


def _edits(suite: TestSuite, cuts: Iterable[SuiteCut]) -> Iterator[tuple[str, SourceEdit]]:
    definitions: set[SourcePosition] = set()
    rows: dict[SourcePosition, set[int]] = {}
    for cut in cuts:
        position = cut.path, cut.line, cut.column
        if cut.row is not None:
            rows.setdefault(position, set()).add(cut.row)
        elif cut.line:
            definitions.add(position)
    for position, numbers in rows.items():
        table = suite.tables[position]
        if len(numbers) == len(table.node.elts):
            definitions |= {(use.path, use.owner.lineno, use.owner.col_offset) for use in table.uses}
        yield from _fewer_rows(suite, table, numbers)
    for path in {path for path, *_ in definitions}:
        cutter = _Cutter(suite, suite.files.parsed[path], definitions)
        yield from ((path, edit) for edit in cutter.edits())


def _spliced(source: str, edits: Collection[SourceEdit]) -> str:
    """The source with these edits; an edit inside another one is dropped."""
    parts = []
    done = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if edit.start >= done:
            parts += [source[done : edit.start], edit.text]
        done = max(done, edit.end)
    return "".join([*parts, source[done:]])


class _Cutter:
    """Removes definitions from one file, with their decorators and comments."""

    def __init__(self, suite: TestSuite, file: TestFile, definitions: Set[SourcePosition]) -> None:
        self._suite = suite
        self._file = file
        self._definitions = definitions
        self._lines = re.split(r"\r\n|\r|\n", file.text.source)

    def edits(self) -> list[SourceEdit]:
        edits, _ = self._body(self._file.module.body, 0)
        return edits

    def _body(self, body: list[ast.stmt], above: int) -> tuple[list[SourceEdit], list[ast.stmt]]:
        """The edits of a body, and its remaining statements."""
        edits: list[SourceEdit] = []
        left: list[ast.stmt] = []
        for node in body:
            inner, empty = self._inside(node)
            if self._file.position_of(node) in self._definitions or (empty and self._can_go(node)):
                assert isinstance(node, Definition)
                edits.append(self._span(node, above, not left and node is not body[-1]))
            else:
                edits += inner
                left.append(node)
            above = node.end_lineno or node.lineno
        return edits, left

    def _inside(self, node: ast.stmt) -> tuple[list[SourceEdit], bool]:
        """The edits inside a statement, and whether only docstrings and `pass` are left in it."""
        bodies = [node.body] if isinstance(node, Definition) else [*blocks(node)]
        every: list[SourceEdit] = []
        empty = False
        for body in bodies:
            edits, left = self._body(body, node.lineno)
            if edits and not left:
                text = self._file.text
                line = f"{' ' * body[0].col_offset}pass"
                end = "\r\n" if "\r\n" in text.source else "\n"
                edits[0] = replace(edits[0], text=line + end)
            empty = bool(edits) and all(isinstance(statement, ast.Expr | ast.Pass) for statement in left)
            every += edits
        return every, empty

    def _can_go(self, node: ast.stmt) -> bool:
        """Whether a class without tests has no other use."""
        if not isinstance(node, ast.ClassDef):
            return False
        bases = {getattr(base, "attr", getattr(base, "id", "")) for base in node.bases}
        return bases <= _WITHOUT_TESTS and not self._suite.files.used_elsewhere(self._file.path, node.name, [node])

    def _span(self, node: Definition, above: int, opens: bool) -> SourceEdit:
        """Whole lines: the comments directly above, the definition, comments at the end of its body, and the empty
        lines before it, or after it if it is the first of what is left of a block."""
        first, last = first_line(node), node.end_lineno or node.lineno
        while first - 1 > above and self._line(first - 1).startswith("#"):
            first -= 1
        following = last + 1
        while following <= len(self._lines):
            text = self._line(following)
            margin = self._lines[following - 1].find("#")
            if text and not (text.startswith("#") and margin > node.col_offset):
                break
            last = following if text else last
            following += 1
        if opens:
            while last < len(self._lines) - 1 and not self._line(last + 1):
                last += 1
        else:
            while first - 1 > above and not self._line(first - 1):
                first -= 1
        return SourceEdit(*self._file.text.line_span(first, last), "")

    def _line(self, number: int) -> str:
        return self._lines[number - 1].strip()


def _fewer_rows(suite: TestSuite, table: ParamTable, numbers: Set[int]) -> Iterator[tuple[str, SourceEdit]]:
    """Edits that remove rows from a table and keep the ids of the others wherever it is used."""
    text = suite.files.parsed[table.path].text
    yield from ((table.path, edit) for edit in _rows_out(text, table.node, numbers))
    for use in table.uses:
        yield from ((use.path, edit) for edit in _renamed(suite.files.parsed[use.path].text, use, numbers))


def _renamed(text: SourceText, use: TableUse, numbers: Set[int]) -> Iterator[SourceEdit]:
    ids = next((keyword for keyword in use.call.keywords if keyword.arg == "ids"), None)
    if use.keeps_names:
        if ids is not None and isinstance(ids.value, RowsNode):
            yield from _rows_out(text, ids.value, numbers)
        return
    names = [literal_for_id(name or "") for row, name in enumerate(use.names) if row not in numbers]
    quoted = [repr(name) for name in names]
    listed = f"ids=[{', '.join(quoted)}]"
    if len(listed) > _LONGEST_LINE:
        margin = " " * (use.call.col_offset + 3)
        listed = "ids=[\n" + "".join(f"{margin}    {keyword},\n" for keyword in quoted) + f"{margin}]"
    if ids is not None:
        yield text.replace(ids, listed)
        return
    end = text.end(use.call) - 1
    last = max([*map(text.end, use.call.args), *map(text.end, use.call.keywords)])
    has_comma = any(match.group() == "," for match in _COMMA.finditer(text.source, last, end))
    yield SourceEdit(end, end, listed if has_comma else f", {listed}")


def _rows_out(text: SourceText, node: RowsNode, numbers: Set[int]) -> Iterator[SourceEdit]:
    """Edits that remove rows with their commas, the comments above them and those on the same line."""
    starts = _row_starts(text, node)
    source = text.source
    for row in sorted(numbers):
        start, end = starts[row], starts[row + 1]
        if all(before in numbers for before in range(row)) and start == text.start(node) + 1:
            blanks = _BLANKS.match(source, end)
            end = blanks.end() if blanks and row + 1 < len(node.elts) else end
        yield SourceEdit(start, end, "")
    kept = [row for row in range(len(node.elts)) if row not in numbers]
    if isinstance(node, ast.Tuple) and len(kept) == 1 and numbers:
        element = text.end(node.elts[kept[0]])
        closing = _CLOSING.match(source, element, starts[kept[0] + 1])
        offset = closing.end() if closing else element
        if not any(match.group() == "," for match in _COMMA.finditer(source, offset, starts[kept[0] + 1])):
            yield SourceEdit(offset, offset, ",")


def _row_starts(text: SourceText, node: RowsNode) -> list[int]:
    """The offset of each row: after the comma of the row before and the rest of that line. The last number is the end
    of the last row."""
    source = text.source
    starts = [_line_end(source, text.start(node) + 1)]
    for row, after in zip(node.elts, node.elts[1:], strict=False):
        gap = _COMMA.finditer(source, text.end(row), text.start(after))
        starts.append(_line_end(source, next(match.end() for match in gap if match.group() == ",")))
    inside = source[: text.end(node) - 1]
    return [*starts, max(text.end(node.elts[-1]), len(inside.rstrip()))]


def _line_end(source: str, offset: int) -> int:
    rest = _REST_OF_LINE.match(source, offset)
    return rest.end() if rest else offset
