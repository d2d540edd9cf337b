"""`gametape audit`: look for reward hacks in finished trajectories."""

from pathlib import Path
from typing import Any

import typer

from gametape.cli.shared import AsJson, JudgeModel, TrajectoryPaths, emit_json

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def audit(
    paths: TrajectoryPaths,
    judge: JudgeModel = None,
    as_json: AsJson = False,
) -> None:
    """List the steps in which an agent tried to get a reward without doing the work.

    Exit code 0 if there is no flag, 1 if there is one, 2 if a file is not a trajectory, 3 if the judge is missing.

    Example: gametape audit runs/first/trajectories/*.json
    """
    from gametape.record.errors import printable_path
    from gametape.record.trajectory_file import load_trajectory
    from gametape.verify.integrity.llm_judge import judge_trajectory, open_judge
    from gametape.verify.integrity.trajectory_audit import audit_trajectory

    ask = open_judge(judge) if judge else None
    flags: list[dict[str, Any]] = []
    for file in _files(paths):
        trajectory = load_trajectory(file)
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
                typer.echo(f"{printable_path(file)}: step {flag.step}: {flag.rule} ({flag.severity}) {flag.evidence}")
    if as_json:
        emit_json({"flags": flags})
    elif not flags:
        typer.echo("no flag")
    raise typer.Exit(1 if flags else 0)


def _files(paths: list[Path]) -> list[Path]:
    """The given files, and every trajectory file of the given directories."""
    from gametape.core.errors import BadInput
    from gametape.record.errors import printable_path

    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted({*path.rglob("*.json"), *path.rglob("*.jsonl")})
            if not inside:
                raise BadInput(f"{printable_path(path)}: a directory without trajectory files")
            files += inside
        else:
            files.append(path)
    return files
