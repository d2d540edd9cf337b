"""`gametape costs`: add up what attempts cost, and how much of it was spent on failures."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gametape.cli.shared import AsJson, TrajectoryPaths, count_of, emit, tell_skipped

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def costs(
    paths: TrajectoryPaths,
    cpu_hour: Annotated[
        float,
        typer.Option("--cpu-hour", metavar="USD", min=0, max=1e6, help="The price of an hour of a sandbox's CPU time."),
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Add up dollars, tokens and CPU seconds: in all, and by model, task, tool and hint.

    The cost of a turn is split equally among the tools it called. Attempts without an outcome are a sum of their own.

    Of a directory every trajectory counts once, closed or still running; other files in it are skipped.

    Exit code 0, or 2 if a named file is not a trajectory or a directory has none.

    \b
    Examples:
      gametape costs runs/first
      gametape costs ~/.local/share/gametape/goals --cpu-hour 0.05
    """
    from gametape.record.trajectory_discovery import find_trajectories
    from gametape.watch.costs import cost_report

    search = find_trajectories(paths)
    report = cost_report((trajectory for _, trajectory in search.load()), cpu_hour).to_dict()
    emit(report | tell_skipped(search), as_json, _show)


def _show(report: dict[str, Any]) -> None:
    from gametape.terminal.table import Column, numbers, print_table

    titles = numbers("attempts", "passed", "dollars", "per success", "on failures", "tokens", "CPU s")
    rows = [["all", *_cells(report)]]
    for key, accounts in report["by"].items():
        rows += [[f"{key}: {_short(name)}", *_cells(account)] for name, account in accounts.items()]
    print_table([Column(wraps=True), *titles], rows)
    if report["unfinished"]:
        spent = f"${report['unfinished_cost_usd']:.4f} and {count_of(report['unfinished_tokens'], 'token')}"
        typer.echo(f"not counted: {report['unfinished']} without an outcome, with {spent}")


def _short(name: str) -> str:
    """A name for a table cell: of a script only the file's name, without control characters."""
    from gametape.watch.text_features import printable

    return printable(f"scripted:{Path(name).name}" if name.startswith("scripted:") and "/" in name else name)


def _cells(account: dict[str, Any]) -> list[str]:
    per_success, failed = account["cost_per_success"], account["failed_share"]
    if failed is None:
        failed = account["failed_share_of_tokens"]
    return [
        str(account["attempts"]),
        str(account["passed"]),
        f"{account['cost_usd']:.4f}",
        "-" if per_success is None else f"{per_success:.4f}",
        "-" if failed is None else f"{failed:.0%}",
        str(account["tokens"]),
        f"{account['cpu_seconds']:.1f}",
    ]
