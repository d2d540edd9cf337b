"""Tables at any width: nothing of a title or a number is lost."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from gametape.terminal.table import Column, numbers, print_table

COLUMNS = [Column("what it is called", wraps=True), *numbers("attempts", "per success"), Column("why", wraps=True)]
ROWS = [
    ["model: scripted:expert", "123456", "1234.5678", "because it was the one that had the longest story to tell"],
    ["tool: x", "1", "-", Text("no reason", style="red")],
]


def _printed(width: int | None, columns: list[Column] = COLUMNS, rows: list[list[str | Text]] = ROWS) -> str:  # type: ignore[assignment]
    file = io.StringIO()
    terminal = width is not None
    print_table(columns, rows, Console(file=file, width=width or 80, force_terminal=terminal, color_system=None))
    return file.getvalue()


@pytest.mark.parametrize("width", [30, 60, 80, 200, None])
def test_nothing_is_lost_at_any_width(width: int | None) -> None:
    text = _printed(width)
    assert "…" not in text
    for number in ("123456", "1234.5678"):
        assert number in text
    words = text.split()
    for cell in (word for row in ROWS for word in str(row[3]).split()):
        assert cell in words
    for title in ("attempts", "success", "why"):
        assert title in words


@pytest.mark.parametrize("width", [60, 80])
def test_a_terminal_is_not_overrun(width: int) -> None:
    assert max(map(len, _printed(width).splitlines())) <= width


def test_without_a_terminal_a_row_is_a_line() -> None:
    lines = _printed(None).splitlines()
    assert len(lines) == 1 + len(ROWS)
    assert all(line == line.rstrip() for line in lines)
    assert lines[0].index("attempts") + len("attempts") == lines[1].index("123456") + len("123456")


def test_a_narrow_terminal_gets_blocks() -> None:
    lines = _printed(30).splitlines()
    assert lines[0] == "model: scripted:expert"
    assert lines[1].split() == ["attempts", "123456"]


def test_text_of_a_model_does_not_drive_the_terminal() -> None:
    text = _printed(80, [Column("a"), Column("b", wraps=True)], [["\x1b[31mred\x07", "[bold]not markup[/]\nsecond"]])
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]not markup[/] second" in text
