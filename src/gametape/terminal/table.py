"""Tables that nothing is cut from: as wide as they are without a terminal, wrapped or stacked on a narrow one."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gametape.watch.text_features import printable

_GAP = 2
_NARROWEST_TEXT = 10
_MARGIN = "  "

Cell = str | Text


class Column(NamedTuple):
    """A column of numbers (`right`) or of words. Only one that `wraps` takes several lines of a row."""

    title: str = ""
    right: bool = False
    wraps: bool = False
    style: str = ""


def numbers(*titles: str) -> list[Column]:
    return [Column(title, right=True) for title in titles]


def print_table(
    columns: Sequence[Column], rows: Iterable[Sequence[Cell]], console: Console | None = None, title: str = ""
) -> None:
    """Print rows under the titles of their columns. Cells are plain text, whatever is in them."""
    console = console or Console(highlight=False)
    texts = [[_text(cell, column) for cell, column in zip(row, columns, strict=True)] for row in rows]
    widths = _widths(columns, texts, console.width if console.is_terminal else None)
    if title:
        console.print(Text(title, style="bold"), soft_wrap=True)
    lines = _stacked(console, columns, texts) if widths is None else _grid(console, columns, texts, widths)
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def _text(cell: Cell, column: Column) -> Text:
    return cell if isinstance(cell, Text) else Text(printable(cell.replace("\n", " ")), style=column.style)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Text]], room: int | None) -> list[int] | None:
    """The width of each column, or None where the room is too narrow for a grid."""
    natural = [
        max([cell_len(column.title), *(cell_len(row[at].plain) for row in rows)]) for at, column in enumerate(columns)
    ]
    room = None if room is None else room - _GAP * (len(columns) - 1)
    if room is None or sum(natural) <= room:
        return natural
    least = [_least_width(column, [row[at].plain for row in rows]) for at, column in enumerate(columns)]
    spare = room - sum(least)
    if spare < 0:
        return None
    widths = list(least)
    while spare and widths != natural:
        for at, wanted in enumerate(natural):
            if spare and widths[at] < wanted:
                widths[at] += 1
                spare -= 1
    return widths


def _least_width(column: Column, cells: Sequence[str]) -> int:
    """What a column needs: its longest word where it wraps, else its widest cell. A title may break at spaces."""
    whole = [word for cell in cells for word in cell.split()] if column.wraps else cells
    least = max([0, *map(cell_len, column.title.split()), *map(cell_len, whole)])
    widest = max([cell_len(column.title), *map(cell_len, cells)])
    return max(least, min(_NARROWEST_TEXT, widest)) if column.wraps else least


def _grid(
    console: Console, columns: Sequence[Column], rows: Sequence[Sequence[Text]], widths: Sequence[int]
) -> Iterable[Text]:
    titles = [Text(column.title, style="dim") for column in columns]
    if any(column.title for column in columns):
        yield from _row_lines(console, columns, titles, widths, wraps=True)
    for row in rows:
        yield from _row_lines(console, columns, row, widths, wraps=False)


def _row_lines(
    console: Console, columns: Sequence[Column], cells: Sequence[Text], widths: Sequence[int], wraps: bool
) -> Iterable[Text]:
    wrapped = [
        list(cell.wrap(console, width, overflow="fold")) if wraps or column.wraps else [cell]
        for column, cell, width in zip(columns, cells, widths, strict=True)
    ]
    for parts in zip_longest(*wrapped):
        line = Text()
        for column, part, width in zip(columns, parts, widths, strict=True):
            text = part.copy() if part is not None else Text()
            text.rstrip()
            margin = " " * (width - cell_len(text.plain))
            line.append_text(Text.assemble(margin, text) if column.right else Text.assemble(text, margin))
            line.append(" " * _GAP)
        line.rstrip()
        yield line


def _stacked(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> Iterable[Text]:
    """Each row as a block: its first cell, and below it a line for every other one."""
    indent = len(_MARGIN) + max(cell_len(column.title) for column in columns[1:]) + _GAP
    for first, *others in rows:
        yield first
        for column, cell in zip(columns[1:], others, strict=True):
            title = f"{_MARGIN}{column.title}"
            for part in cell.wrap(console, max(_NARROWEST_TEXT, console.width - indent), overflow="fold"):
                part.rstrip()
                yield Text.assemble((title, "dim"), " " * (indent - cell_len(title)), part)
                title = ""
