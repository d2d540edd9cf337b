"""`gametape worlds`: make suites of procedural tool worlds."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from gametape.cli.shared import AsJson, emit

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)


@app.callback()
def worlds() -> None:
    """Procedural tool worlds: long chains of small jobs in memory, a few of which depend on a rule."""


@app.command()
def make(
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new directory for the suite.")],
    count: Annotated[int, typer.Option(metavar="N", help="The number of worlds.")] = 100,
    horizon: Annotated[int, typer.Option(metavar="H", help="Jobs in a world, 4 to 64.")] = 12,
    load_bearing: Annotated[int, typer.Option(metavar="M", help="The number of jobs that depend on a rule.")] = 1,
    base_rate: Annotated[
        float, typer.Option(metavar="P", help="The rate at which a noisy expert follows the rule.")
    ] = 0.2,
    error_delay: Annotated[int, typer.Option(metavar="D", help="Turns until a violation is reported.")] = 0,
    hints: Annotated[
        Literal["shared", "instance"],
        typer.Option(help="shared: the same rules in every world. instance: rules of each world."),
    ] = "shared",
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of all worlds.")] = 0,
    family: Annotated[
        Literal["files", "database", "build"] | None, typer.Option(help="One family only (default: all mixed).")
    ] = None,
    split: Annotated[
        Literal["all", "train", "held_out"], typer.Option(help="The pairs of a rule and a context that may occur.")
    ] = "all",
    retry: Annotated[bool, typer.Option("--retry", help="A job whose violation was reported comes back once.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a suite: suite.json, and a small file for each world. The same options give the same worlds on any machine.

    Exit code 0 if the suite is written, 2 for invalid values.

    Example: gametape worlds make --out suites/starved --count 200 --horizon 16 --load-bearing 2 --base-rate 0.05
    """
    from pydantic import ValidationError

    from gametape.core.errors import BadInput
    from gametape.core.validation import problems_from
    from gametape.tasks.worlds.spec import WorldSpec
    from gametape.tasks.worlds.suite import make_suite

    knobs = {
        "seed": seed,
        "family": family,
        "horizon": horizon,
        "load_bearing": load_bearing,
        "base_rate": base_rate,
        "error_delay": error_delay,
        "hints": hints,
        "split": split,
        "retry": retry,
    }
    try:
        spec = WorldSpec.model_validate(knobs)
    except ValidationError as error:
        problem = problems_from(error, knobs)[0]
        raise BadInput(f"--{problem.path.replace('_', '-')}: expected {problem.expected}") from error
    paths = make_suite(out, spec, count)
    emit(
        {"suite": str(out.absolute()), "tasks": [str(path.absolute()) for path in paths]},
        as_json,
        f"{len(paths)} worlds in {out}",
    )
