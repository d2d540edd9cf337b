"""`gametape calibration`: score an agent's forecasts of success."""

from typing import Annotated, Any

import typer

from gametape.cli.shared import AsJson, TrajectoryPaths, emit, tell_skipped

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def calibration(
    paths: TrajectoryPaths,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of the bootstrap.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Score forecasts of success against outcomes.

    \b
    before, after   the agent's own forecast (`extra.confidence` of a trajectory)
    calibrated      from the trajectory's features, learned on attempts at other tasks
    skill           1 is perfect, 0 is no better than the base rate
    ECE             is meaningful only where it is above that of a perfect forecaster

    Exit code 0; 1 if no attempt has an outcome; 2 if a named file is not a trajectory or a directory has none.

    Example: gametape calibration runs/first
    """
    from gametape.record.trajectory_discovery import find_trajectories
    from gametape.watch.calibration import forecast_attempt, forecasts_by_kind, score_forecasts

    search = find_trajectories(paths)
    read = (forecast_attempt(trajectory) for _, trajectory in search.load())
    attempts = [attempt for attempt in read if attempt is not None]
    scores = {
        name: score_forecasts(pairs, seed).to_dict() for name, pairs in forecasts_by_kind(attempts).items() if pairs
    }
    passed = sum(attempt.passed for attempt in attempts)
    answer = {"n": len(attempts), "base_rate": passed / len(attempts) if attempts else None, "forecasts": scores}
    emit(answer | tell_skipped(search), as_json, _show)
    raise typer.Exit(0 if attempts else 1)


def _show(answer: dict[str, Any]) -> None:
    from gametape.terminal.table import Column, numbers, print_table

    if not answer["n"]:
        typer.echo("no attempt has an outcome")
        return
    rows = []
    for name, scores in answer["forecasts"].items():
        intervals = [_with_interval(scores[key]) for key in ("brier", "skill", "auroc", "ece")]
        rows.append([name, str(scores["n"]), *intervals, f"{scores['ece_if_perfect']:.3f}"])
    print_table([Column(), *numbers("n", "Brier", "skill", "AUROC", "ECE", "ECE if perfect")], rows)
    typer.echo(f"{answer['n']} attempts, {answer['base_rate']:.0%} passed")


def _with_interval(estimate: dict[str, float] | None) -> str:
    return "-" if estimate is None else f"{estimate['value']:.3f} ({estimate['low']:.3f} to {estimate['high']:.3f})"
