"""`gametape mine`: make tasks from a repository with tests."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gametape.cli.shared import AsJson, Home, count_of, emit_json, printable_line
from gametape.record.errors import printable_path
from gametape.record.home import home_directory

if TYPE_CHECKING:
    from gametape.tasks.mining.miner import MiningRequest
    from gametape.tasks.mining.summary import MiningSummary

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def mine(
    source: Annotated[Path, typer.Argument(help="A directory with a Python package and its tests, or an sdist.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new directory for the tasks.")],
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Try at most N candidates.")] = None,
    tests: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where the tests are, if not in a usual place.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of the order of candidates and of every split.")] = 0,
    tier: Annotated[
        Literal["stub", "removal"],
        typer.Option(help="stub: signatures and docstrings stay. removal: functions go, with what imports them."),
    ] = "stub",
    kind: Annotated[
        Literal["deletion", "bug"], typer.Option(help="deletion: a feature is gone. bug: one small change breaks it.")
    ] = "deletion",
    union: Annotated[int, typer.Option(min=1, max=16, metavar="N", help="Delete N features at once.")] = 1,
    chain: Annotated[
        int,
        typer.Option(min=0, max=48, metavar="N", help="One long task: N features, to be restored one after another."),
    ] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Sandboxes at the same time (default: the number of cores).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an earlier run in DIR.")] = False,
    python: Annotated[
        Path | None,
        typer.Option(metavar="P", help="An interpreter with the tests' dependencies (default: one is built)."),
    ] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Make tasks from SOURCE: remove code that only some of its tests reach, and ask for it to be restored.

    No model and no container is needed. All tests run in the sandbox, without network. Every candidate goes through
    every gate: the tests that need the code fail and all others pass, the author's code restores it, part of the
    failing tests can be held out, and the deleted code is readable nowhere.

    \b
    Exit code 0 if there are tasks, 1 if SOURCE is refused or no candidate is valid (the reason is printed),
    2 for bad input, 3 if something is missing here.

    \b
    Examples:
      gametape mine ~/src/tinydb --out tasks/tinydb
      gametape mine tomlkit-0.15.tar.gz --out tasks/tomlkit --limit 50 --tier removal
      gametape mine tomlkit-0.15.tar.gz --out tasks/tomlkit --limit 50 --tier removal --resume
    """
    from gametape.tasks.mining.miner import MiningRequest

    request = MiningRequest(
        source=source,
        out=out.absolute(),
        home=home_directory(home),
        limit=limit,
        tests=tests,
        seed=seed,
        tier=tier,
        kind=kind,
        union=union,
        chain=chain,
        jobs=jobs or os.cpu_count() or 1,
        resume=resume,
        python=python.absolute() if python else None,
    )
    summary = _run_mining(request, as_json)
    if as_json:
        emit_json(_report(summary, request.out))
    else:
        _show(summary, request.out)
    raise typer.Exit(0 if summary.valid else 1)


def _run_mining(request: "MiningRequest", as_json: bool) -> "MiningSummary":
    """Run the miner and return its summary. A refusal or Ctrl-C ends the program here, with one line about why."""
    from gametape.core.errors import Interrupted
    from gametape.tasks.mining.miner import mine as run
    from gametape.tasks.project import ProjectRefused
    from gametape.terminal.mining_view import mining_progress

    try:
        with mining_progress() as observer:
            return run(request, observer)
    except ProjectRefused as refusal:
        if as_json:
            emit_json(_refusal_report(refusal.reason, str(refusal)))
        typer.echo(f"gametape: refused ({refusal.reason}): {' '.join(str(refusal).split())}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; --resume goes on with {printable_path(request.out)}") from None


def _refusal_report(reason: str, message: str) -> dict[str, Any]:
    nothing = {"candidates": 0, "valid": 0, "rejected": {}, "seconds": 0.0, "seconds_per_candidate": None}
    modes = {"replayable": 0, "modes": {"replay": 0, "split": 0, "shared": 0}, "not_replayable": {}}
    return {**nothing, **modes, "refused": {"reason": reason, "message": message}, "suite": None, "tasks": []}


def _report(summary: "MiningSummary", out: Path) -> dict[str, Any]:
    report: dict[str, Any] = {
        "project": summary.project,
        "candidates": len(summary.records),
        "valid": len(summary.valid),
        "rejected": summary.rejected,
        "refused": None,
        "seconds": round(summary.seconds, 2),
        "seconds_per_candidate": summary.seconds_per_candidate,
        "suite": summary.suite,
        "replayable": summary.modes["replay"],
        "modes": summary.modes,
        "not_replayable": summary.not_replayable,
        "tasks": [str(out / record["task"]) for record in summary.valid],
    }
    if summary.parts:
        from gametape.tasks.mining.summary import count_rejections

        valid = sum("reason" not in record for record in summary.parts)
        report["parts"] = {
            "candidates": len(summary.parts),
            "valid": valid,
            "rejected": count_rejections(summary.parts),
        }
    return report


def _show(summary: "MiningSummary", out: Path) -> None:
    from rich.console import Console
    from rich.text import Text

    from gametape.terminal.table import Column, numbers, print_table

    console = Console(highlight=False)
    suite = summary.suite
    set_aside = ", ".join(f"{count} {reason}" for reason, count in suite["set_aside"].items())
    text = f"{summary.project}: {suite['tests']} tests that can be relied on" + (
        f" (set aside: {set_aside})" if set_aside else ""
    )
    console.print(Text(text), soft_wrap=True)
    total = len(summary.records)
    counts = [(Text("valid", style="green"), len(summary.valid), summary.valid[0]["task"] if summary.valid else "")]
    for reason, count in summary.rejected.items():
        example = next(record["detail"] for record in summary.records if record.get("reason") == reason)
        counts.append((Text(reason), count, printable_line(example)))
    columns = [Column(), *numbers("candidates", "share"), Column("for example", wraps=True, style="dim")]
    rows = [(name, str(count), f"{count / total:.1%}" if total else "", example) for name, count, example in counts]
    print_table(columns, rows, console)
    if summary.valid:
        console.print(Text(_describe_modes(summary)), soft_wrap=True)
    pace = f", {summary.seconds_per_candidate:.2f} s for a candidate" if summary.seconds_per_candidate else ""
    tasks = count_of(len(summary.valid), "task")
    console.print(
        Text(f"{tasks} in {printable_path(out)} ({summary.seconds:.0f} s{pace})"),
        soft_wrap=True,
    )


def _describe_modes(summary: "MiningSummary") -> str:
    """How the tasks are verified, and why some of them not by replay."""
    words = {"replay": "by replay", "split": "live and apart from the code", "shared": "in one process with the code"}
    text = "verified " + ", ".join(f"{words[mode]}: {count}" for mode, count in summary.modes.items() if count)
    reasons = ", ".join(f"{reason} {count}" for reason, count in summary.not_replayable.items())
    return f"{text} (not replayed: {reasons})" if reasons else text
