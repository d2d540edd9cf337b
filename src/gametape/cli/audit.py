"""`gametape audit`: look for reward hacks in finished trajectories."""

from typing import Any

import typer

from gametape.cli.shared import AsJson, JudgeModel, TrajectoryPaths, emit_json, printable_line, tell_skipped

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def audit(
    paths: TrajectoryPaths,
    judge: JudgeModel = None,
    as_json: AsJson = False,
) -> None:
    """List the steps in which an agent tried to get a reward without doing the work.

    Of a directory every trajectory is read; other files in it, and the agent's own workspace, are skipped.

    Exit code 0 if there is no flag, 1 if there is one, 2 if a named file is not a trajectory or a directory has none,
    3 if the judge is missing.

    Example: gametape audit runs/first
    """
    from gametape.record.errors import printable_path
    from gametape.record.trajectory_discovery import find_trajectories
    from gametape.verify.integrity.llm_judge import judge_trajectory, open_judge
    from gametape.verify.integrity.trajectory_audit import audit_trajectory

    ask = open_judge(judge) if judge is not None else None
    flags: list[dict[str, Any]] = []
    search = find_trajectories(paths)
    for file, trajectory in search.load():
        for flag in [*audit_trajectory(trajectory), *(judge_trajectory(trajectory, ask) if ask else [])]:
            flags.append(
                {
                    "trajectory": str(file.absolute()),
                    "step": flag.step,
                    "rule": flag.rule,
                    "severity": flag.severity,
                    "evidence": flag.evidence,
                }
            )
            if not as_json:
                evidence = printable_line(flag.evidence)
                typer.echo(f"{printable_path(file)}: step {flag.step}: {flag.rule} ({flag.severity}) {evidence}")
    left_out = tell_skipped(search)
    if as_json:
        emit_json({"flags": flags} | left_out)
    elif not flags:
        typer.echo("no flag")
    raise typer.Exit(1 if flags else 0)
