"""`gametape demo`: show the whole loop in minutes, from a code base to a policy that learned from a hint."""

from pathlib import Path
from typing import Annotated

import typer

from gametape.cli.shared import AsJson, Home, emit, emit_json
from gametape.record.home import home_directory

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="A new directory; runs/demo if not given.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="The seed of everything that is random.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run every stage, too briefly to learn anything.")] = False,
    resume: Annotated[Path | None, typer.Option(metavar="DIR", help="Continue the demo in this directory.")] = None,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Only run six programs in the sandbox, five of them hostile.")
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Run the whole loop on this machine: mine, attempt, verify, warm-start, train with and without hints, report.

    A few tasks are mined from a small example project. One is attempted in the sandbox by a script that solves it and
    by one that cheats, and the verifier scores each. Then a tiny policy is warm-started, and trained twice
    from the same weights with the same budget of operations: with rewards alone (RLVR), and with a hint at the turn
    that went wrong (RLVR+TTF). Everything is written to DIR; DIR/report.html has the plots and the tape of one rollout.

    \b
    Exit code 0 if every stage ran, with or without a gain; `gained` in the JSON says which.
    1 if the verifier or a run failed, 2 for bad input, 3 if something is missing here.

    \b
    Examples:
      gametape demo
      gametape demo --seed 1 --out runs/demo-1
      gametape demo --sandbox
    """
    if sandbox:
        from gametape.demo.sandbox_programs import print_programs, run_programs

        rows = run_programs()
        held = all(row["held"] for row in rows)
        emit({"acts": rows, "held": held}, as_json, lambda _: print_programs(rows))
        raise typer.Exit(0 if held else 1)
    from rich.console import Console

    from gametape.cli.train import free_name
    from gametape.core.errors import BadInput, Interrupted
    from gametape.demo.run import run_demo
    from gametape.demo.state import DemoState
    from gametape.record.errors import printable_path
    from gametape.record.installation import command_line

    if resume and (out or quick or seed is not None):
        raise BadInput("--resume continues a demo as it was begun: give no --out, --seed or --quick with it")
    directory = (resume or out or free_name(Path("runs") / "demo")).absolute()
    root = home_directory(home)
    state = DemoState.resume(directory, root) if resume else DemoState.new(directory, root, seed or 0, quick)
    try:
        answer = run_demo(state, Console(stderr=as_json, highlight=False, soft_wrap=True))
    except KeyboardInterrupt:
        again = command_line("demo", "--resume", directory)
        raise Interrupted(f"interrupted; what is done is in {printable_path(directory)}; go on with: {again}") from None
    if as_json:
        emit_json(answer)
    raise typer.Exit(0 if answer["told_apart"] else 1)
