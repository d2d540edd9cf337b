"""`gametape demo`: the whole loop in minutes, from a code base to a policy that learned from a hint."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gametape.cli.shared import emit_json

if TYPE_CHECKING:
    from rich.console import Console

    from gametape.demo.state import DemoState

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="A new directory; runs/demo if not given.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="Decides everything that is drawn.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Every act, much too short to learn anything.")] = False,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Go on with the demo that was begun there.")
    ] = None,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Only this: six programs meet the sandbox, five of them hostile.")
    ] = False,
    home: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where verdicts and environments are kept ($GAMETAPE_HOME).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on the last line of stdout.")] = False,
) -> None:
    """Show the whole loop on this machine: mine, attempt, verify, warm-start, train with and without hints, report.

    A few tasks are mined from a small example project. One is attempted in the sandbox by a script that solves it and
    by one that cheats, and the verifier says what each is worth. Then a tiny policy is warm-started, and trained twice
    from the same weights with the same budget of operations: with rewards alone (RLVR), and with a hint at the turn
    that went wrong (RLVR+TTF). Everything lies in DIR; DIR/report.html has the plots and the tape of one rollout.

    \b
    Exit code 0 if every act ran, with a gain or without one: which of them is printed, and is `gained` in the JSON.
    1 if the verifier or a run failed, 2 for bad input, 3 if something is missing here.

    \b
    Examples:
      gametape demo
      gametape demo --seed 1 --out runs/demo-1
      gametape demo --sandbox
    """
    if sandbox:
        _meet_the_wall(as_json)
    from gametape.cli.shared import home_directory
    from gametape.cli.train import free_name
    from gametape.core.errors import BadInput
    from gametape.demo.state import DemoState
    from gametape.record.errors import printable_path

    if resume and (out or quick or seed is not None):
        raise BadInput("--resume takes a demo as it was begun: no --out, --seed or --quick beside it")
    place = (resume or out or free_name(Path("runs") / "demo")).absolute()
    kept = home_directory(home)
    stage = DemoState.resume(place, kept) if resume else DemoState.new(place, kept, seed or 0, quick)
    try:
        answer = _perform(stage, as_json)
    except KeyboardInterrupt:
        typer.echo(
            f"gametape: interrupted; what is done lies in {printable_path(place)}; go on with: gametape demo --resume "
            f"{printable_path(place)}",
            err=True,
        )
        raise typer.Exit(130) from None
    if as_json:
        emit_json(answer)
    raise typer.Exit(0 if answer["told_apart"] else 1)


def _perform(stage: "DemoState", as_json: bool) -> dict[str, Any]:
    """Act after act; those that an earlier call has finished are only shown."""
    from rich.console import Console

    from gametape.core.errors import BadInput, MissingDependency
    from gametape.demo import stages, view
    from gametape.demo.arms import ARMS, train_arms
    from gametape.record.errors import printable_path
    from gametape.studio.report import compare_runs, write_report
    from gametape.studio.run_files import RunFiles

    try:
        import torch  # noqa: F401 - better said now than in the middle
    except ImportError as error:
        raise MissingDependency(
            f"training needs torch and transformers: pip install 'gametape[train]' ({error})"
        ) from error
    console = Console(stderr=as_json, highlight=False, soft_wrap=True)
    acts: tuple[tuple[str, str, Callable[[DemoState], Any], Callable[[Console, Any], None]], ...] = (
        ("mined", "Mine tasks from examples/demo-project", stages.mine_tasks, view.show_mined),
        ("rollouts", "Attempt one in the sandbox, and verify", stages.attempt_task, view.show_attempts),
        ("warm", "Warm-start a tiny policy", stages.warm_start, view.show_warm),
        ("arms", "Train RLVR and RLVR+TTF from the same weights, with the same budget", train_arms, lambda *_: None),
    )
    for number, (name, title, act, show) in enumerate(acts, start=1):
        _heading(console, number, title)
        if name not in stage.data:
            began = time.monotonic()
            part = act(stage)
            stage.keep(**{name: part}, seconds=round(stage.data["seconds"] + time.monotonic() - began, 1))
        show(console, stage.data[name])
    runs = [RunFiles(stage.out / arm) for arm in ARMS]
    for run in runs:
        if not run.scores:
            raise BadInput(
                f"{printable_path(run.root)}: the run has no held-out score in metrics.jsonl; begin another demo"
            )
    verdict = compare_runs(runs)
    view.show_arms(console, runs, verdict)
    report = write_report(stage.out, ARMS)
    console.print(f"{stage.data['seconds']:.0f} s in all; the report, with plots and the tape of one rollout:")
    console.print(str(report), markup=False)
    return _answer(stage, report, verdict)


def _heading(console: "Console", number: int, title: str) -> None:
    console.print(f"\n[bold]{number}. {title}[/]")


def _answer(stage: "DemoState", report: Path, verdict: Any) -> dict[str, Any]:
    told = stage.data
    return {
        "report": str(report),
        "out": str(stage.out),
        "seed": stage.seed,
        "quick": told["quick"],
        "arms": told["arms"],
        "gained": verdict.gained,
        "gain": {
            "points": round(100 * verdict.gain, 2),
            "low": round(100 * verdict.low, 2),
            "high": round(100 * verdict.high, 2),
            "said": verdict.sentence,
        },
        "load_bearing": {"unhinted": told["warm"]["load_bearing"], "hinted": told["warm"]["hinted"]},
        "mined": told["mined"],
        "rollouts": [
            {name: one[name] for name in ("model", "task", "passed", "reward", "turns", "trajectory")}
            for one in told["rollouts"]
        ],
        "told_apart": [one["passed"] for one in told["rollouts"]] == [True, False],
        "seconds": told["seconds"],
    }


def _meet_the_wall(as_json: bool) -> None:
    """Exits 0 when the harmless program worked and every hostile one was stopped."""
    from rich.console import Console

    from gametape.demo.sandbox_programs import programs_table, run_programs

    rows = run_programs()
    held = all(row["held"] for row in rows)
    if as_json:
        emit_json({"acts": rows, "held": held})
    else:
        Console().print(programs_table(rows))
    raise typer.Exit(0 if held else 1)
