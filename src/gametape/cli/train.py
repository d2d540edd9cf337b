"""`gametape train`: train a policy on rewards that can be checked."""

import asyncio
import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gametape.cli.shared import AsJson, Home, emit
from gametape.core.plural import count_of
from gametape.record.errors import printable_path
from gametape.record.home import home_directory

if TYPE_CHECKING:
    from gametape.core.config import RunConfig
    from gametape.train.run_parts import RunParts

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def train(
    config: Annotated[
        Path | None, typer.Argument(help="A TOML file; see configs/ and --defaults. None is needed with --tasks.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="M", help="What is trained: a Hugging Face model directory, smollm2, tiny, or a run."),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(metavar="T", help="What it is trained on: a directory of tasks, katas:FAMILY or worlds:NAME."),
    ] = None,
    arm: Annotated[
        str | None,
        typer.Option(
            metavar="ARM", help="How: rlvr (default), rlvr_ttf, rejection, sft, warm; more in docs/training.md."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="RUN", help="A new directory for the run.")] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Continue this run after its last checkpoint.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="The seed of everything that is random.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="K=V", help="Override a setting, such as rl.groups=4.")
    ] = None,
    allow_shared: Annotated[
        bool,
        typer.Option("--allow-shared", help="Also train on tasks in shared mode, where a verdict can be forged."),
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Train on this Ray cluster; local starts one here. See [cluster]."),
    ] = None,
    defaults: Annotated[
        bool, typer.Option("--defaults", help="Print every setting with its default, as TOML.")
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Train a policy: an optional warm start, then rollouts, rewards and updates.

    What to train, on what and how is said by --model, --tasks and --arm, by a file CONFIG, or by both: options count
    more than the file, and --set more than either. katas:lists:200 are 200 small functions to write (arithmetic,
    strings, lists, dicts or all).

    RUN holds everything: config.toml, metrics.jsonl (a line for each update), start/ (the first weights) and
    checkpoints/ (each with a model/ that transformers and vLLM load). An interrupted run, even after kill -9, goes on
    with --resume, and with `rl.reproducible = true` gives the same numbers as one that was not interrupted. With
    --resume, --set may change how long the run is and how it is observed: episodes, flops, eval.every,
    checkpoint.every and the like; config-history.jsonl says what was changed, and when.

    Defaults go by the policy: for a tiny one (model = "tiny", or weights that train in worlds) turns of 16 tokens,
    rollouts that count for 64 and a learning rate of 3e-4; for any other 1024, 2048 and 5e-6. The reward of tasks is
    layered unless reward.kind says pass_rate or binary. It trains on the GPU where there is one (device, dtype).
    context.tokens shortens the window or, with context.rope_scaling, lengthens it. --defaults prints every setting.

    With --ray samplers and the ranks of the learner are processes on a Ray cluster, as [cluster] says; rollouts are
    then sampled beside learning, as with rl.asynchronous. RUN must lie where every node sees it. What dies is begun
    again, and no prompt is lost or learned from twice.

    Tasks in shared mode run the agent's code in one process with their tests, where a verdict can be forged; they are
    refused unless --allow-shared or allow_shared = true asks for them.

    \b
    Exit code 0 if the run finished, 1 if it had to stop (the loss is not a number), 2 for bad input,
    3 if something is missing here, such as room on the disk.

    \b
    Examples:
      gametape train --model smollm2 --tasks katas:lists --out runs/katas
      gametape train --model ./Qwen3-0.6B --tasks suites/mined --arm rlvr_ttf --set lora.rank=32 --set episodes=2000
      gametape train configs/rlvr-moderate.toml --out runs/first
      gametape train configs/rlvr-moderate.toml --out runs/second --seed 1 --set rl.group_size=16
      gametape train configs/rlvr-moderate.toml --out runs/third --ray local --set cluster.samplers=2
      gametape train --resume runs/first
      gametape train --resume runs/first --set episodes=8000
    """
    if defaults:
        from gametape.train.config_file import default_config_toml

        typer.echo(default_config_toml())
        return
    from gametape.core.errors import Interrupted
    from gametape.record.installation import command_line
    from gametape.train.early_checks import check_early

    home = home_directory(home)
    changes = [*(changes or []), *(["allow_shared=true"] if allow_shared else [])]
    if ray is not None:
        from gametape.cluster.access import prepare_ray

        prepare_ray(ray)
        changes.append("rl.asynchronous=true")
    options = {"model": model, "tasks": tasks, "arm": arm, "seed": seed}
    given = {name: value for name, value in options.items() if value is not None}
    root, settings = _open_run(config, out, resume, given, changes)
    check_early(settings, home)
    try:
        answer = _run_training(root, settings, home, resume is not None, ray)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; go on with: {command_line('train', '--resume', root)}") from None
    emit(answer, as_json, _show)
    raise typer.Exit(1 if answer["stopped_by"].startswith("nan") else 0)


def _open_run(
    config: Path | None, out: Path | None, resume: Path | None, given: dict[str, Any], changes: list[str]
) -> "tuple[Path, RunConfig]":
    """Where the run lies or will lie, and its settings. Loads nothing heavy."""
    from gametape.core.errors import BadInput
    from gametape.train.config_file import read_config
    from gametape.train.early_checks import CONFIG, check_free, check_resumable_here, holds_run

    if resume is not None:
        if config or out or given:
            names = ", ".join(["CONFIG", "--out", *(f"--{name}" for name in given)])
            raise BadInput(f"--resume continues a run as it was begun: give no {names} with it")
        if not (resume / CONFIG).exists():
            raise BadInput(f"{printable_path(resume)}: there is no run here to resume (no {CONFIG})")
        settings = read_config(resume / CONFIG, changes)
        check_resumable_here(resume, settings)
        return resume, settings
    settings = read_config(config, changes, given if config else _with_defaults(given, changes))
    name = config.stem if config else re.sub(r"[^\w.-]+", "-", f"{settings.arm}-{Path(settings.tasks).name}")
    root = out or free_name(Path("runs") / name)
    if holds_run(root):
        there = printable_path(root)
        raise BadInput(f"{there}: there is a run here already; give --resume {there}, or another --out")
    check_free(root)
    return root, settings


def _with_defaults(given: dict[str, Any], changes: list[str]) -> dict[str, Any]:
    """Without a file: what there is no default for must be said, and the arm is that of plain rewards."""
    from gametape.core.errors import BadInput

    said = {*given, *(change.partition("=")[0].strip() for change in changes)}
    tasks = "--tasks T (a directory of tasks, katas:FAMILY or worlds:NAME)"
    missing = [] if "tasks" in said else [tasks]
    missing += [] if "model" in said or str(given.get("tasks", "worlds:")).startswith("worlds:") else ["--model M"]
    if not said and missing:
        raise BadInput("give --model M and --tasks T, or a configuration file, or --resume RUN (see --help)")
    if missing:
        raise BadInput(f"give {' and '.join(missing)} too, or a configuration file")
    return {"arm": "rlvr", **given}


def free_name(wanted: Path) -> Path:
    """This path, or the first one with a number appended that is free."""
    number, path = 1, wanted
    while path.exists():
        number += 1
        path = wanted.with_name(f"{wanted.name}-{number}")
    return path


def _run_training(root: Path, config: "RunConfig", home: Path | None, resumed: bool, ray: str | None) -> dict[str, Any]:
    from gametape.core.errors import MissingDependency
    from gametape.record.installation import install_extra

    try:
        from gametape.terminal.training_view import TrainView
        from gametape.train.run_directory import RunDirectory
        from gametape.train.training import train as run
    except ImportError as error:
        raise MissingDependency(f"training needs torch and transformers: {install_extra('train')} ({error})") from error
    directory = RunDirectory(root)
    with directory.lock() if resumed else directory.begin(config):
        changed = directory.change_config(config)
        with TrainView(config) as view:
            view.show_start(directory.root, changed)
            with _parts(ray, config) as parts:
                return asyncio.run(run(config, directory, home_directory(home), view.callbacks, parts=parts))


def _parts(ray: str | None, config: "RunConfig") -> "AbstractContextManager[RunParts | None]":
    if ray is None:
        return nullcontext()
    from gametape.cluster.ray_parts import open_cluster

    return open_cluster(ray, config)


def _show(answer: dict[str, Any]) -> None:
    reached = ", ".join(
        f"{rate} after {count_of(count, 'episode')}"
        for rate, count in answer["episodes_to"].items()
        if count is not None
    )
    updates = count_of(answer["updates"], "update")
    why, _, advice = answer["note"].partition(": ")
    because = f" ({why})" if why else ""
    typer.echo(
        f"{answer['arm']}: {count_of(answer['episodes'], 'episode')}, {updates}{because}, {answer['seconds']:.0f} s"
    )
    if advice:
        typer.echo(f"what to do: {advice}")
    typer.echo(f"held-out success: {answer['success_before']:.1%} before, {answer['success_after']:.1%} after")
    if reached:
        typer.echo(f"held-out success of {reached}")
    typer.echo(f"stopped by: {answer['stopped_by']}")
    typer.echo(f"weights: {printable_path(Path(answer['weights']))}")
    typer.echo(f"run: {printable_path(Path(answer['run']))}")
