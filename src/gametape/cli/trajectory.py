"""`gametape trajectory`: show, check, convert and export trajectory files."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gametape.cli.shared import AsJson, Home, emit, emit_json, printable_line
from gametape.core.atif_upgrade import upgrade_trajectory
from gametape.core.errors import BadInput
from gametape.record.errors import printable_path
from gametape.record.trajectory_file import (
    ParsedTrajectory,
    parse_file,
    require_trajectory,
    save_trajectory,
)

if TYPE_CHECKING:
    from gametape.studio.run_place import RunPlace

app = typer.Typer(
    help="Show, check and convert trajectory files: ATIF 1.0 to 1.8, and the journals of running trajectories.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command()
def show(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|DIR|ID",
            help="A trajectory of any maker, a run, a goal, a thread, or `last`: the newest goal or thread in HOME.",
        ),
    ],
    turns: Annotated[
        str | None, typer.Option("--turn", "--turns", metavar="N|A-B", help="Only this turn, or these.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Fold nothing.")] = False,
    lines: Annotated[int, typer.Option(min=1, metavar="N", help="Lines of a result before it is folded.")] = 8,
    reasoning: Annotated[bool, typer.Option("--reasoning", help="Show what the model thought.")] = False,
    subagent: Annotated[str | None, typer.Option(metavar="ID", help="Show this subagent's trajectory.")] = None,
    width: Annotated[
        int | None,
        typer.Option(min=20, metavar="N", help="Columns (default: the terminal's, or as long as a line is)."),
    ] = None,
    color: Annotated[str, typer.Option(metavar="auto|always|never", help="Colours; auto honours NO_COLOR.")] = "auto",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Show a trajectory: who worked on what, how it ended, what it took, and every turn. A directory with several is
    listed.

    Exit code 0, or 2 for something that is no trajectory.

    \b
    Examples:
      gametape trajectory show last
      gametape trajectory show runs/first
      gametape trajectory show goal-20261115-3f9a2c --turn 3 --full
      gametape trajectory show other/agent/trajectory.json --reasoning
    """
    from gametape.cli.color import open_console
    from gametape.record.home import home_directory
    from gametape.studio.run_place import find_place
    from gametape.studio.trajectory_view import find_subagent, read_trajectory
    from gametape.terminal.step_lines import Fold
    from gametape.terminal.trajectory_view import show_trajectory

    place = find_place(run, home_directory(home))
    if place.trajectory is None:
        _list(place, color, width, as_json)
        return
    first, last = _turn_range(turns)
    view = read_trajectory(place.trajectory, lambda turn: first <= turn <= last)
    view = find_subagent(view, subagent) if subagent else view
    if turns and not view.steps:
        raise BadInput(f"--turn {turns}: there are {view.totals.turns} turns")
    if as_json:
        emit_json({"kind": place.kind, **view.to_dict()})
        return
    fold = Fold(None, None, reasoning or full) if full else Fold(lines, reasoning=reasoning)
    console = open_console(color, width)
    show_trajectory(console, view, fold, wrap=width is not None or console.file.isatty())


def _list(place: "RunPlace", color: str, width: int | None, as_json: bool) -> None:
    """The trajectories of a directory, in a table."""
    from gametape.cli.color import open_console
    from gametape.studio.trajectory_view import read_trajectory
    from gametape.terminal.trajectory_view import show_table

    files = place.trajectories()
    if not files:
        where = printable_path(place.path)
        raise BadInput(f"{where}: has no trajectory")
    views, damaged = [], []
    for file in files:
        try:
            views.append(read_trajectory(file, lambda _turn: False))
        except BadInput as error:
            damaged.append(str(error))
    if not views:
        raise BadInput(damaged[0])
    for line in damaged:
        typer.echo(f"gametape: left out: {line}", err=True)
    if as_json:
        emit_json({"kind": place.kind, "trajectories": [view.to_dict() for view in views], "damaged": damaged})
        return
    console = open_console(color, width)
    show_table(console, views, printable_path(place.path))
    console.print(
        f"show one with: gametape trajectory show {printable_path(views[0].path)}", style="dim", soft_wrap=True
    )


def _turn_range(text: str | None) -> tuple[float, float]:
    if text is None:
        return 0, float("inf")
    match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})?)?", text)
    if match is None or (match[2] and int(match[2]) < int(match[1])) or int(match[1]) < 1:
        raise BadInput(f"--turn {text}: expected a number from 1, as 3, or a range, as 3-7 or 3-")
    first = int(match[1])
    return first, int(match[2]) if match[2] else float("inf") if "-" in text else first


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Trajectories, as .json or .jsonl.")],
    as_json: AsJson = False,
) -> None:
    """Check whether files are valid trajectories, and list the errors.

    \b
    Exit code 0 if all are valid, 1 if one is not, 2 if one cannot be read.
      tokens exact   every turn's prompt continues the turn before it, token by token
      mask ok        every turn with token ids has a mask of those to train on

    \b
    Example:
      gametape trajectory check runs/first/trajectories/*.json
    """
    parsed: dict[Path, ParsedTrajectory] = {}
    unread: dict[Path, BadInput] = {}
    for file in files:
        try:
            parsed[file] = parse_file(file)
        except BadInput as error:
            unread[file] = error
    if unread and not parsed:
        raise next(iter(unread.values()))
    if as_json:
        report = _report(parsed)
        errors = [
            {"file": str(file.absolute()), "path": "", "expected": str(problem)} for file, problem in unread.items()
        ]
        failure = {"error": errors[0]["expected"], "exit_code": 2} if errors else {}
        report |= {"valid": report["valid"] and not errors, "errors": [*report["errors"], *errors], **failure}
        emit_json(report)
    else:
        _show(parsed)
    for problem in unread.values():
        typer.echo(f"gametape: {printable_line(str(problem))}", err=True)
    if unread or any(result.problems for result in parsed.values()):
        raise typer.Exit(2 if unread else 1)


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A trajectory of any version, or a journal.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")],
    as_json: AsJson = False,
) -> None:
    """Write a trajectory as ATIF 1.8. The input is not changed; unknown fields are kept.

    \b
    Example:
      gametape trajectory convert old.json --out new.json
    """
    converted = upgrade_trajectory(require_trajectory(parse_file(source), source))
    _refuse_target(out, source)
    save_trajectory(out, converted)
    emit(
        _report({out: parse_file(out)}) | {"written": str(out.absolute())},
        as_json,
        f"{printable_path(out)}: {converted.schema_version}, {len(converted.steps)} steps",
    )


@app.command()
def export(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Trajectories, as .json or .jsonl.")],
    otlp: Annotated[str, typer.Option("--otlp", metavar="URL", help="An OTLP receiver, as http://HOST:PORT.")],
    as_json: AsJson = False,
) -> None:
    """Send trajectories as OpenTelemetry spans: agent, turns, tool calls, tokens; no texts.

    \b
    Example:
      gametape trajectory export runs/first/trajectories/*.json --otlp http://127.0.0.1:4318
    """
    from gametape.watch.otel_export import export_traces

    spans = export_traces([require_trajectory(parse_file(file), file) for file in files], otlp)
    emit({"trajectories": len(files), "spans": spans}, as_json, f"{spans} spans")


def _refuse_target(out: Path, source: Path) -> None:
    """Refuse to write over the input, a directory or a device."""
    if not out.exists():
        return
    if out.samefile(source):
        raise BadInput(f"{printable_path(out)}: is the input; give --out another name")
    if not out.is_file():
        raise BadInput(f"{printable_path(out)}: not a regular file; give --out the name of a file")


def _report(parsed: dict[Path, ParsedTrajectory]) -> dict[str, Any]:
    files = [_facts(file, result) for file, result in parsed.items()]
    errors = [
        {"file": str(file.absolute()), "path": problem.path, "expected": problem.expected}
        for file, result in parsed.items()
        for problem in result.problems
    ]
    return {
        "valid": not errors,
        "errors": errors,
        "turns": sum(facts["turns"] or 0 for facts in files),
        "tokens_exact": _all_known(facts["tokens_exact"] for facts in files),
        "mask_ok": _all_known(facts["mask_ok"] for facts in files),
        "files": files,
    }


def _facts(file: Path, result: ParsedTrajectory) -> dict[str, Any]:
    trajectory = result.trajectory
    bad_mask = any(".gametape.loss_mask" in problem.path for problem in result.problems)
    return {
        "file": str(file.absolute()),
        "valid": not result.problems,
        "version": trajectory and trajectory.schema_version,
        "steps": trajectory and len(trajectory.steps),
        "turns": trajectory and trajectory.turns,
        "tokens_exact": trajectory and trajectory.tokens_exact(),
        "mask_ok": trajectory.mask_ok() if trajectory else False if bad_mask else None,
        "torn_bytes": result.torn_bytes,
    }


def _all_known(answers: Any) -> bool | None:
    known = [answer for answer in answers if answer is not None]
    return all(known) if known else None


def _show(parsed: dict[Path, ParsedTrajectory]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for file, result in parsed.items():
        facts = _facts(file, result)
        if result.problems:
            console.print(Text.assemble(("not valid  ", "red"), printable_path(file)), soft_wrap=True)
            for problem in result.problems:
                console.print(Text(f"    {problem}"), soft_wrap=True)
            continue
        facts_text = [facts["version"], f"steps: {facts['steps']}", f"turns: {facts['turns']}"]
        facts_text += _describe_flag("tokens exact", facts["tokens_exact"]) + _describe_flag(
            "mask ok", facts["mask_ok"]
        )
        if result.torn_bytes:
            facts_text.append(f"an unfinished last line of {result.torn_bytes} bytes is ignored")
        console.print(
            Text.assemble(("valid      ", "green"), f"{printable_path(file)}  {', '.join(facts_text)}"), soft_wrap=True
        )


def _describe_flag(what: str, answer: bool | None) -> list[str]:
    return [] if answer is None else [what if answer else f"not {what}"]
