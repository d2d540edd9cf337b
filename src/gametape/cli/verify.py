"""`gametape verify`: score a workspace with the tests of its task."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gametape.cli.shared import AsJson, Home, emit_json
from gametape.record.home import home_directory

if TYPE_CHECKING:
    from gametape.core.verdict import Verdict

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_MOST_SHOWN = 5


@app.command()
def verify(
    task: Annotated[Path, typer.Argument(help="A task directory.")],
    workspace: Annotated[Path, typer.Option(help="The directory an agent worked in. It is only read.")],
    profile: Annotated[
        Literal["train", "full"],
        typer.Option(help="train: tests, twins, held-out tests, integrity. full: also a second order and all layers."),
    ] = "full",
    reward: Annotated[
        Literal["layered", "pass_rate", "binary"], typer.Option(help="How the verdict is turned into a number.")
    ] = "layered",
    home: Home = None,
    cache: Annotated[bool, typer.Option(help="Reuse an earlier verdict on the same files.")] = True,
    as_json: AsJson = False,
) -> None:
    """Run the tests of TASK against a workspace, so that nothing in the workspace can fake the outcome.

    Only the declared sources are taken from the workspace. Exits 0 if it passed; 1 if it is wrong, hacked, flaky,
    hanging or empty; 2 if TASK or the workspace cannot be used.

    Example: gametape task checkout examples/tasks/slugs --out /tmp/try --solved, then
    gametape verify examples/tasks/slugs --workspace /tmp/try
    """
    from gametape.tasks.loader import load_task
    from gametape.verify.verifier import Verifier

    root = home_directory(home)
    loaded_task = load_task(task, root, lambda text: typer.echo(text, err=True))
    with Verifier(loaded_task, root, keep_verdicts=cache) as verifier:
        verdict = verifier.verify(workspace, profile, reward)
    if as_json:
        emit_json(verdict.model_dump(mode="json"))
    else:
        show_verdict(verdict)
    raise typer.Exit(0 if verdict.passed else 1)


def show_verdict(verdict: "Verdict") -> None:
    from rich.console import Console
    from rich.markup import escape

    from gametape.terminal.table import Column, print_table

    console = Console(highlight=False)
    counts = verdict.tests
    word = "[green]passed[/]" if verdict.passed else "[red]not passed[/]"
    hidden = f", {counts.held_out_passed} of {counts.held_out_expected} held out" if counts.held_out_expected else ""
    how = (
        f"{verdict.mode}, assurance {verdict.assurance}, {verdict.seconds:.2f} s{', cached' if verdict.cached else ''}"
    )
    console.print(
        f"{word}  reward [bold]{verdict.reward:+.2f}[/]  {counts.passed} of {counts.expected} tests{hidden}  ({how})"
    )
    rows = [(check.name, f"{check.score:.2f}", check.detail) for check in verdict.checks]
    print_table([Column("layer"), Column("score", right=True), Column("evidence", wraps=True)], rows, console)
    for failure in verdict.failures[:_MOST_SHOWN]:
        last = failure.message.strip().splitlines()[-1:] or [""]
        console.print(f"{failure.result} {escape(failure.test)} [dim]{escape(last[0])}[/]")
    if len(verdict.failures) > _MOST_SHOWN:
        console.print(f"[dim]and {len(verdict.failures) - _MOST_SHOWN} more visible tests[/]")
    for stage in verdict.stages:
        console.print(f"stage {escape(stage.name)}: {'reached' if stage.passed else 'not reached'}")
    for flag in verdict.integrity:
        where = f" {flag.file}:{flag.line}" if flag.line else f" {flag.file}" if flag.file else ""
        console.print(f"[red]{flag.severity}[/] {flag.rule}{escape(where)}: {escape(flag.evidence)}")
    for signal in verdict.signals:
        console.print(f"[yellow]signal[/] {signal.name}: {escape(signal.detail)}")
    if verdict.quarantined:
        console.print("[yellow]quarantined[/]: two runs disagreed, so this verdict says nothing")
