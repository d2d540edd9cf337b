"""The tables of parametrised tests, and the test ids that each of their rows produces."""

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gametape.syntax.definitions import Definition
from gametape.syntax.parametrization import (
    ParamAxis,
    RowsNode,
    RowSource,
    argument_names,
    read_param_axes,
)
from gametape.syntax.pytest_ids import literal_for_id
from gametape.syntax.suite_files import SourcePosition, TestFiles

_MOST_PARTS = 40


@dataclass(frozen=True, eq=False)
class TableUse:
    """A decorator that takes its rows from a table, and the ids that it gives them."""

    path: str
    call: ast.Call
    owner: Definition
    names: tuple[str | None, ...]
    """The part of the test id of each row, where it is certain."""
    keeps_names: bool
    """Whether the remaining rows keep their ids when others are removed."""

    @property
    def can_be_named(self) -> bool:
        return all(name is not None and literal_for_id(name) is not None for name in self.names)


@dataclass(frozen=True, eq=False)
class ParamTable:
    """A table whose rows can be removed one by one."""

    path: str
    node: RowsNode
    uses: tuple[TableUse, ...]
    ids: tuple[frozenset[str], ...]
    """The test ids of each row."""

    @property
    def position(self) -> SourcePosition:
        return self.path, self.node.lineno, self.node.col_offset


def read_param_tables(files: TestFiles, ids: Sequence[str]) -> list[ParamTable]:
    """The tables for which it is certain which row produces which of these ids. `ids` are in collection order."""
    reader = _Reader(files)
    groups: dict[str, list[str]] = {}
    for test in ids:
        function, bracket, _ = test.partition("[")
        if bracket and test.endswith("]"):
            groups.setdefault(function, []).append(test)
    for function, tests in groups.items():
        reader.read(function, tests)
    return [*reader.tables()]


class _Reader:
    def __init__(self, files: TestFiles) -> None:
        self._files = files
        self._tables: dict[SourcePosition, RowSource] = {}
        self._uses: dict[SourcePosition, dict[SourcePosition, TableUse]] = {}
        self._ids: dict[SourcePosition, list[set[str]]] = {}
        self._unclear: set[SourcePosition] = set()

    def read(self, function: str, tests: list[str]) -> None:
        """Assign the ids of one test function in one class to rows."""
        axes = read_param_axes(self._files, function)
        if axes is None:
            return
        texts = [test[len(function) + 1 : -1] for test in tests]
        known = [axis for axis in axes.own if axis.table is not None]
        complete = not axes.fixtures and len(known) == len(axes.own)
        rows_by_id = (complete and _by_order(known, texts)) or _by_windows(known, texts)
        if rows_by_id:
            self._take(known, tests, rows_by_id, texts if complete else None)
        for axis in axes.fixtures if rows_by_id else (*known, *axes.fixtures):
            if axis.table is not None:
                self._take([axis], tests, _by_windows([axis], texts), None)

    def _take(
        self,
        axes: Sequence[ParamAxis],
        tests: list[str],
        rows_by_id: list[tuple[int, ...]] | None,
        texts: list[str] | None,
    ) -> None:
        """Record the row of each id. Without `rows_by_id` the rows are unknown, and the tables must not be changed."""
        for index, axis in enumerate(axes):
            assert axis.table is not None
            position = axis.table.file.position_of(axis.table.node)
            self._tables[position] = axis.table
            rows = self._ids.setdefault(position, [set() for _ in axis.rows])
            if rows_by_id is None:
                self._unclear.add(position)
                continue
            for test, id_rows in zip(tests, rows_by_id, strict=True):
                rows[id_rows[index]].add(test)
            names = _row_names(axes, index, rows_by_id, texts)
            keeps = all(
                row.position_independent and row.exact == name for row, name in zip(axis.rows, names, strict=True)
            )
            use = TableUse(axis.file.path, axis.call, axis.owner, names, keeps)
            self._uses.setdefault(position, {})[axis.file.position_of(axis.call)] = use

    def tables(self) -> Iterator[ParamTable]:
        for position, table in self._tables.items():
            uses = [*self._uses.get(position, {}).values()]
            nameable = all(use.keeps_names or use.can_be_named for use in uses)
            certain = position not in self._unclear and (not table.name or self._only_used_by(table, uses))
            if uses and nameable and certain and len(table.node.elts) > 1:
                yield ParamTable(position[0], table.node, tuple(uses), tuple(map(frozenset, self._ids[position])))

    def _only_used_by(self, table: RowSource, uses: Iterable[TableUse]) -> bool:
        """Whether a constant is used by these decorators and by nothing else."""
        number: dict[str, int] = {}
        for use in uses:
            number[use.path] = number.get(use.path, 0) + 1
        for file in self._files.parsed.values():
            concerned = file is table.file or table.name in file.foreign or table.name in file.imports
            if concerned and len(file.names.get(table.name, [])) != number.get(file.path, 0):
                return False
        return True


def _by_order(axes: Sequence[ParamAxis], texts: Sequence[str]) -> list[tuple[int, ...]] | None:
    """The rows of each id by its position in the collection, if every id also matches their patterns."""
    combinations = (
        [*itertools.product(*(range(len(axis.rows)) for axis in axes))] if _product(axes) == len(texts) else []
    )
    if not combinations or not all(axis.ordered for axis in axes):
        return None
    for combination, text in zip(combinations, texts, strict=True):
        pattern = "-".join(axis.rows[row].pattern for axis, row in zip(axes, combination, strict=True))
        if not re.fullmatch(pattern, text, re.DOTALL):
            return None
    return combinations


def _product(axes: Sequence[ParamAxis]) -> int:
    number = 1
    for axis in axes:
        number *= len(axis.rows)
    return number


def _by_windows(axes: Sequence[ParamAxis], texts: Sequence[str]) -> list[tuple[int, ...]] | None:
    """The rows of each id by its text between dashes; None unless that is certain for all ids."""
    by_text: dict[str, tuple[int, ...]] = {}
    if not axes or any(row.exact is None for axis in axes for row in axis.rows):
        return None
    for combination in itertools.product(*(range(len(axis.rows)) for axis in axes)):
        text = "-".join(axis.rows[row].exact or "" for axis, row in zip(axes, combination, strict=True))
        if text in by_text:
            return None
        by_text[text] = combination
    rows_by_id = []
    for text in texts:
        parts = text.split("-")
        if len(parts) > _MOST_PARTS:
            return None
        windows = {"-".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1)}
        matches = {by_text[window] for window in windows if window in by_text}
        if len(matches) != 1:
            return None
        rows_by_id.append(matches.pop())
    return rows_by_id


def _row_names(
    axes: Sequence[ParamAxis], index: int, rows_by_id: Sequence[tuple[int, ...]], texts: Sequence[str] | None
) -> tuple[str | None, ...]:
    """The name of each row of an axis in test ids: an id without the parts of the other axes, or the parts between
    dashes that belong to the axis."""
    names: list[str | None] = [row.exact for row in axes[index].rows]
    if texts is None:
        return tuple(names)
    widths = [len(argument_names(axis.call)) or 1 for axis in axes]
    known: dict[int, set[str | None]] = {}
    for id_rows, text in zip(rows_by_id, texts, strict=True):
        around = [axis.rows[row].exact for axis, row in zip(axes, id_rows, strict=True)]
        before = "".join(f"{part}-" for part in around[:index])
        after = "".join(f"-{part}" for part in around[index + 1 :])
        name = None
        if None not in (*around[:index], *around[index + 1 :]):
            if text.startswith(before) and text.endswith(after) and len(text) >= len(before) + len(after):
                name = text[len(before) : len(text) - len(after)]
        elif text.count("-") == sum(widths) - 1:
            start = sum(widths[:index])
            name = "-".join(text.split("-")[start : start + widths[index]])
        known.setdefault(id_rows[index], set()).add(name)
    for row, candidates in known.items():
        names[row] = candidates.pop() if len(candidates) == 1 else None
    return tuple(names)
