"""`gametape train`: train a policy on rewards that can be checked."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gametape.cli.shared import AsJson, Home, emit
from gametape.record.home import home_directory

if TYPE_CHECKING:
    from gametape.core.config import RunConfig
    from gametape.train.run_directory import RunDirectory

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def train(
    config: Annotated[Path | None, typer.Argument(help="A TOML file; see configs/ and --defaults.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="RUN", help="A new directory for the run.")] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Continue this run after its last checkpoint.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="The seed of everything that is random.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="K=V", help="Override a setting, such as rl.groups=4.")
    ] = None,
    defaults: Annotated[
        bool, typer.Option("--defaults", help="Print every setting with its default, as TOML.")
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Train a policy with CONFIG: an optional warm start, then rollouts, rewards and updates.

    RUN holds everything: config.toml, metrics.jsonl (a line for each update), start/ (the first weights) and
    checkpoints/ (each a model that transformers loads). An interrupted run, even after kill -9, continues with
    --resume and gives the same numbers.

    \b
    Exit code 0 if the run finished, 1 if it had to stop (the loss is not a number), 2 for bad input,
    3 if something is missing here, such as room on the disk.

    \b
    Examples:
      gametape train configs/rlvr-moderate.toml --out runs/first
      gametape train configs/rlvr-moderate.toml --out runs/second --seed 1 --set rl.group_size=16
      gametape train --resume runs/first
    """
    if defaults:
        from gametape.train.config_file import default_config_toml

        typer.echo(default_config_toml())
        return
    home = home_directory(home)
    directory, settings = _open_run(config, out, resume, seed, changes or [])
    answer = _run_training(directory, settings, home, resumed=resume is not None)
    emit(answer, as_json, _show)
    raise typer.Exit(1 if answer["stopped_by"].startswith("nan") else 0)


def _open_run(
    config: Path | None, out: Path | None, resume: Path | None, seed: int | None, changes: list[str]
) -> "tuple[RunDirectory, RunConfig]":
    from gametape.core.errors import BadInput
    from gametape.train.config_file import read_config
    from gametape.train.run_directory import RunDirectory

    if resume is not None:
        if config or out or seed is not None or changes:
            raise BadInput("--resume continues a run as it was begun: give no CONFIG, --out, --seed or --set with it")
        directory = RunDirectory(resume)
        return directory, directory.resume_config()
    if config is None:
        raise BadInput("give a configuration file, or --resume RUN, or --defaults to see what can be set")
    if seed is not None:
        changes = [*changes, f"seed={seed}"]
    settings = read_config(config, changes)
    return RunDirectory(out or free_name(Path("runs") / config.stem)), settings


def free_name(wanted: Path) -> Path:
    """This path, or the first one with a number appended that is free."""
    number, path = 1, wanted
    while path.exists():
        number += 1
        path = wanted.with_name(f"{wanted.name}-{number}")
    return path


def _run_training(directory: "RunDirectory", config: "RunConfig", home: Path | None, resumed: bool) -> dict[str, Any]:

    from gametape.core.errors import MissingDependency
    from gametape.record.errors import printable_path

    try:
        from gametape.terminal.training_view import TrainView
        from gametape.train.training import train as run
    except ImportError as error:
        raise MissingDependency(
            f"training needs torch and transformers: pip install 'gametape[train]' ({error})"
        ) from error
    if not resumed:
        directory.check_free()
    with directory.lock():
        if not resumed:
            directory.create(config)
        try:
            with TrainView(config) as view:
                return asyncio.run(run(config, directory, home_directory(home), view.callbacks))
        except KeyboardInterrupt:
            typer.echo(
                f"gametape: interrupted; go on with: gametape train --resume {printable_path(directory.root)}", err=True
            )
            raise typer.Exit(130) from None


def _show(answer: dict[str, Any]) -> None:
    reached = ", ".join(f"{rate} after {count}" for rate, count in answer["episodes_to"].items() if count is not None)
    typer.echo(f"{answer['arm']}: {answer['episodes']} episodes, {answer['steps']} updates, {answer['seconds']:.0f} s")
    typer.echo(f"held-out success: {answer['success_before']:.1%} before, {answer['success_after']:.1%} after")
    if reached:
        typer.echo(f"held-out success of {reached} episodes")
    typer.echo(f"stopped by: {answer['stopped_by']}")
    typer.echo(answer["run"])
