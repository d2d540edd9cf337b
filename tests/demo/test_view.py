"""The demo's plots, and the output of tasks and models on the terminal."""

import io

from rich.console import Console

from gametape.demo.view import plot, show_attempts, show_mined


def test_curves_are_drawn_from_left_to_right() -> None:
    drawn = plot({"up": [(0, 0.0), (100, 1.0)], "flat": [(0, 0.5), (50, 0.5)]}, "title", width=21, height=5)
    title, *rows = drawn.plain.splitlines()
    assert title == "title"
    assert [row[7:] for row in rows[:5]] == [
        "                  ooo",
        "             ooooo   ",
        "***********oo        ",
        "   ooooo             ",
        "ooo                  ",
    ]
    assert rows[-1].split() == ["o", "up", "*", "flat"]


def test_a_plot_of_nothing_is_empty_and_of_one_point_has_one() -> None:
    assert "o" not in plot({}, "").plain
    assert plot({"one": [(0, 1.0)]}, "", width=5, height=3).plain.splitlines()[1].endswith("|o    ")


def test_what_a_task_or_a_model_wrote_is_shown_and_not_obeyed() -> None:
    hostile = "[red]a[/red]\x1b]0;title\x07 b"
    counts = {"held_out_passed": 0, "held_out_expected": 1, "passed": 0, "expected": 2}
    attempt = {
        "model": "scripted:cheat",
        "passed": False,
        "reward": -1.0,
        "tests": counts,
        "checks": [{"name": "tests", "score": 0.0, "detail": hostile}],
        "integrity": [{"severity": "proven", "rule": "tests.removed", "evidence": hostile}],
    }
    console = Console(file=io.StringIO(), width=120)
    show_attempts(console, [attempt])
    show_mined(console, {"valid": 1, "candidates": 1, "project": hostile, "seconds": 1, "names": [hostile]})
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert told.count("[red]a[/red]") == 4
    assert not {"\x1b", "\x07"} & set(told)
