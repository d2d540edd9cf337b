"""`gametape verify`: score a workspace with the tests of its task."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gametape.cli.shared import AsJson, Home, emit_json
from gametape.record.errors import printable_path
from gametape.record.home import home_directory
from gametape.terminal.wait_line import waiting

if TYPE_CHECKING:
    from gametape.core.verdict import Verdict
    from gametape.record.loaded_task import LoadedTask
    from gametape.verify.grader_report import TestDifference

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_MOST_SHOWN = 5
_MOST_OF_A_RULE = 3


@app.command()
def verify(
    task: Annotated[Path, typer.Argument(help="A task directory.")],
    workspace: Annotated[Path, typer.Option(help="The directory an agent worked in. It is only read.")],
    profile: Annotated[
        Literal["train", "full"],
        typer.Option(help="train: tests, fresh calls, integrity. full: also a second order and all layers."),
    ] = "full",
    reward: Annotated[
        Literal["layered", "pass_rate", "binary"], typer.Option(help="How the verdict is turned into a number.")
    ] = "layered",
    home: Home = None,
    cache: Annotated[bool, typer.Option(help="Reuse an earlier verdict on the same files.")] = True,
    grader: Annotated[
        bool,
        typer.Option("--grader", help="Also say what differed, held out or not: for the author, never for a policy."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the tests of TASK against a workspace, so that nothing in the workspace can fake the outcome.

    Only the declared sources are taken from the workspace. The recorded calls of tests are replayed in a sandbox that
    holds no test and no expected value; tests that cannot be recorded run beside that. Calls on inputs that no test
    has are drawn anew each time. Exits 0 if it passed; 1 if it is wrong, hacked, flaky, hanging or empty; 2 if TASK
    or the workspace cannot be used.

    --grader lists every test that did not pass and every fresh call that was answered otherwise: the input, what was
    expected and what came. With --json they are in differences[] and other_differences[]. What it prints gives the
    held-out tests away: do not let an agent or a policy see it.

    Example: gametape task checkout examples/tasks/slugs --out /tmp/try --solved, then
    gametape verify examples/tasks/slugs --workspace /tmp/try
    """
    from gametape.tasks.loader import load_task
    from gametape.verify.verifier import Verifier

    root = home_directory(home)
    with waiting(f"loading {printable_path(task)}") as line:
        loaded_task = load_task(task, root, line.tell)
    note = foreign_note(loaded_task, workspace)

    def show_stage(stage: str, done: int, total: int) -> None:
        tell_note()
        line.show_stage(stage, done, total)

    def tell_note() -> None:
        """Once: before the wait, or with the verdict where there was none to wait for."""
        nonlocal note
        if note:
            typer.echo(note, err=True)
        note = ""

    differences: Sequence[TestDifference] = ()
    others: Sequence[TestDifference] = ()
    with (
        waiting(f"verifying {printable_path(task)}") as line,
        Verifier(loaded_task, root, keep_verdicts=cache, on_progress=show_stage) as verifier,
    ):
        if grader:
            graded = verifier.grade(workspace, profile, reward)
            verdict, differences, others = graded.verdict, graded.differences, graded.others
        else:
            verdict = verifier.verify(workspace, profile, reward)
    tell_note()
    if as_json:
        answer = verdict.model_dump(mode="json")
        if grader:
            answer["differences"] = [each.to_dict() for each in differences]
            answer["other_differences"] = [each.to_dict() for each in others]
        emit_json(answer)
    else:
        show_verdict(verdict, failures=not differences)
        show_differences([*differences, *others])
    raise typer.Exit(0 if verdict.passed else 1)


def foreign_note(task: "LoadedTask", workspace: Path) -> str:
    """What to say of a workspace that has no file of the task: that it has none, and where there is one that has."""
    names = task.start.files
    if not workspace.is_dir() or any((workspace / name).exists() for name in names):
        return ""
    inner = workspace / "workspace"
    meant = f"; did you mean {printable_path(inner)}?" if any((inner / name).exists() for name in names) else ""
    return f"gametape: {printable_path(workspace)} has no file of the task's tree{meant}"


def show_differences(differences: "Sequence[TestDifference]") -> None:
    """What differed, for a grader."""
    if not differences:
        return
    from gametape.terminal.table import Column, print_table

    rows = [(_kind(each), each.test, each.summary) for each in differences]
    columns = [Column("kind"), Column("test", wraps=True), Column("said", wraps=True)]
    print_table(columns, rows, title="for the grader only, not for a policy:")


def _kind(difference: "TestDifference") -> str:
    if difference.kind in ("fresh", "tolerated"):
        return difference.kind
    return "held out" if difference.held_out else "visible"


def show_verdict(verdict: "Verdict", failures: bool = True) -> None:
    """A verdict as text, with or without the visible tests that failed."""
    from rich.console import Console
    from rich.markup import escape

    from gametape.terminal.table import Column, print_table
    from gametape.verify.test_message import summarize_message
    from gametape.watch.text_features import printable

    console = Console(highlight=False)
    counts = verdict.tests
    word = "[green]passed[/]" if verdict.passed else "[red]not passed[/]"
    hidden = f", {counts.held_out_passed} of {counts.held_out_expected} held out" if counts.held_out_expected else ""
    if verdict.fresh:
        hidden += f", {verdict.fresh.agreed} of {verdict.fresh.calls} fresh calls"
    how = (
        f"{verdict.mode}, assurance {verdict.assurance}, {verdict.seconds:.2f} s{', cached' if verdict.cached else ''}"
    )
    console.print(
        f"{word}  reward [bold]{verdict.reward:+.2f}[/]  {counts.passed} of {counts.expected} tests{hidden}  ({how})",
        soft_wrap=not console.is_terminal,
    )
    rows = [(check.name, f"{check.score:.2f}", check.detail) for check in verdict.checks]
    print_table([Column("layer"), Column("score", right=True), Column("evidence", wraps=True)], rows, console)
    failed = verdict.failures if failures else []
    for failure in failed[:_MOST_SHOWN]:
        said = printable(summarize_message(failure.message))
        console.print(
            f"{failure.result} {escape(printable(failure.test))} [dim]{escape(said)}[/]",
            soft_wrap=not console.is_terminal,
        )
    if len(failed) > _MOST_SHOWN:
        console.print(f"[dim]and {len(failed) - _MOST_SHOWN} more visible tests[/]")
    for stage in verdict.stages:
        console.print(f"stage {escape(stage.name)}: {'reached' if stage.passed else 'not reached'}")
    by_rule = Counter[str]()
    for flag in verdict.integrity:
        by_rule[flag.rule] += 1
        if by_rule[flag.rule] > _MOST_OF_A_RULE:
            continue
        where = f" {flag.file}:{flag.line}" if flag.line else f" {flag.file}" if flag.file else ""
        console.print(f"[red]{flag.severity}[/] {flag.rule}{escape(where)}: {escape(flag.evidence)}", soft_wrap=True)
    for rule, count in by_rule.items():
        if count > _MOST_OF_A_RULE:
            console.print(f"[dim]and {count - _MOST_OF_A_RULE} more of {rule}[/]")
    for signal in verdict.signals:
        console.print(f"[yellow]signal[/] {signal.name}: {escape(signal.detail)}", soft_wrap=True)
    if verdict.assurance_detail:
        console.print(f"[dim]assurance {verdict.assurance}: {escape(verdict.assurance_detail)}[/]", soft_wrap=True)
    if verdict.quarantined:
        console.print("[yellow]quarantined[/]: two runs disagreed, so this verdict says nothing")
