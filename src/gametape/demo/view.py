"""What the demo prints. Output of models, tools and tasks is shown as plain text, without control characters."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from rich.console import Console
from rich.text import Text

from gametape.studio.comparison import ArmComparison
from gametape.studio.run_files import RunFiles
from gametape.studio.sections.training import run_labels
from gametape.terminal.step_lines import clip_line
from gametape.terminal.table import Column, numbers, print_table

Points = Sequence[tuple[float, float]]

_STYLES = ("cyan", "red", "green", "magenta")
_MARKS = "o*+x"
_WIDTH, _HEIGHT = 60, 11
_FLAGS = 3


def show_mined(console: Console, mined: dict[str, Any]) -> None:
    text = f"{mined['valid']} of {mined['candidates']} candidates of {_short_line(mined['project'])} became tasks"
    console.print(Text(f"{text} ({mined['seconds']} s)"))
    for name in mined["names"]:
        console.print(Text(f"  {_short_line(name)}", style="dim"))


def show_attempts(console: Console, attempts: Sequence[dict[str, Any]]) -> None:
    for attempt in attempts:
        tests, style = attempt["tests"], "green" if attempt["passed"] else "red"
        hidden = f", {tests['held_out_passed']} of {tests['held_out_expected']} held out"
        console.print(
            Text.assemble(
                (_short_line(attempt["model"]), "bold"),
                ": ",
                ("passed" if attempt["passed"] else "not passed", style),
                f", reward {attempt['reward']:+.2f}, {tests['passed']} of {tests['expected']} tests{hidden}",
            )
        )
        rows = [
            (f"  {_short_line(check['name'])}", f"{check['score']:.2f}", _short_line(check["detail"]))
            for check in attempt["checks"]
        ]
        print_table([Column("  layer"), *numbers("score"), Column("evidence", wraps=True)], rows, console)
        for flag in attempt["integrity"][:_FLAGS]:
            text = f"  {flag['severity']} {_short_line(flag['rule'])}: {_short_line(flag['evidence'])}"
            console.print(Text(text, style="red"))
        if len(attempt["integrity"]) > _FLAGS:
            console.print(Text(f"  and {len(attempt['integrity']) - _FLAGS} more flags", style="dim"))


def show_warm(console: Console, warm: dict[str, Any]) -> None:
    console.print(f"held-out success {_share(warm['success'])} over {warm['episodes']} episodes at temperature 1")
    console.print(
        f"load-bearing turns that go right: {_share(warm['load_bearing'])} without the hint, "
        f"{_share(warm['hinted'])} with it; other turns {_share(warm['ordinary'])}"
    )


def show_arms(console: Console, runs: Sequence[RunFiles], verdict: ArmComparison | None) -> None:
    curves = {
        label: [(score["flops"] / 1e6, score["success"]) for score in run.scores]
        for run, label in zip(runs, run_labels(runs), strict=True)
    }
    console.print(plot(curves, "held-out success over millions of operations"))
    print_before_and_after(console, runs)
    if verdict:
        console.print(Text(verdict.sentence, style="bold green" if verdict.gained else "bold yellow"))


def print_before_and_after(console: Console, runs: Sequence[RunFiles]) -> None:
    rows = []
    for run, label in zip(runs, run_labels(runs), strict=True):
        first, last = run.scores[0], run.scores[-1]
        turns = [f"{_share(first[name])} > {_share(last[name])}" for name in ("load_bearing", "ordinary")]
        spent = (str(last["episodes_so_far"]), f"{last['flops'] / 1e6:.0f}", str(len(run.targets)))
        rows.append([label, _share(first["success"]), _share(last["success"]), *turns, *spent])
    titles = numbers("before", "after", "load-bearing", "other turns", "episodes", "Mflop", "targets")
    print_table([Column("arm"), *titles], rows, console)


def plot(curves: Mapping[str, Points], title: str, width: int = _WIDTH, height: int = _HEIGHT) -> Text:
    """Draw curves with values from 0 to 1 as lines of characters; a later curve covers an earlier one."""
    most = max((x for points in curves.values() for x, _ in points), default=0) or 1
    cells: dict[tuple[int, int], int] = {}
    for number, points in enumerate(curves.values()):
        for column in range(width):
            share = _at(points, most * column / (width - 1))
            if share is not None:
                cells[round((1 - min(1, max(0, share))) * (height - 1)), column] = number
    text = Text(f"{title}\n", style="default")
    for row in range(height):
        text.append(f"{1 - row / (height - 1):>5.0%} |" if row % 2 == 0 else "      |", style="dim")
        for column in range(width):
            number = cells.get((row, column), -1)
            text.append(" " if number < 0 else _mark(number), style="" if number < 0 else _style(number))
        text.append("\n")
    text.append(f"      +{'-' * width}\n       0{most:>{width - 1}.0f}\n", style="dim")
    for number, name in enumerate(curves):
        text.append(f"  {_mark(number)} {name}", style=_style(number))
    return text


def _at(points: Points, x: float) -> float | None:
    """Interpolate linearly between two points; None beyond the last one."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * ((x - x0) / (x1 - x0) if x1 > x0 else 1)
    return points[0][1] if len(points) == 1 and x == points[0][0] else None


def _mark(number: int) -> str:
    return _MARKS[number % len(_MARKS)]


def _style(number: int) -> str:
    return _STYLES[number % len(_STYLES)]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _short_line(text: str) -> str:
    return clip_line(text, 160)
