"""`gametape katas`: make tasks that ask for small Python functions."""

from pathlib import Path
from typing import Annotated

import typer

from gametape.cli.shared import AsJson, emit

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)


@app.callback()
def katas() -> None:
    """Small Python functions to write, each a task with visible and held-out tests."""


@app.command()
def make(
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new directory for the tasks.")],
    count: Annotated[int, typer.Option(min=1, metavar="N", help="The number of katas.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of all katas.")] = 0,
    family: Annotated[
        str | None, typer.Option(metavar="F", help="Only arithmetic, strings, lists or dicts (default: all in turn).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write katas as task directories, all different. The same options give the same katas on any machine.

    Exit code 0 if they are written, 2 for bad input.

    Example: gametape katas make --out suites/katas --count 200 --seed 1
    """
    from gametape.tasks.katas.generator import make_katas

    tasks = make_katas(out.absolute(), count, seed, family)
    emit(
        {"suite": str(out.absolute()), "tasks": [str(path) for path in tasks]}, as_json, f"{len(tasks)} katas in {out}"
    )
