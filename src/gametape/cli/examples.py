"""`gametape examples`: copy the example tasks and configurations that came with the package."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from gametape.cli.shared import AsJson, emit
from gametape.core.errors import BadInput
from gametape.record.errors import printable_path, write_error

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_NAMES = ("configs", "examples")


@app.command()
def examples(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where configs/ and examples/ are put.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Copy configs/ and examples/, which the documentation names, from the installed package.

    Exit code 0, or 2 if one of them is there already.

    Example: gametape examples && gametape solve examples/tasks/slugs --model scripted:expert --out runs/first
    """
    from gametape.record.shipped_files import shipped_file

    for name in _NAMES:
        if (out / name).exists():
            raise BadInput(f"{printable_path(out / name)}: is there already; give --out another directory")
    try:
        for name in _NAMES:
            ignored = shutil.ignore_patterns("__pycache__", ".*_cache")
            shutil.copytree(shipped_file(name), out / name, ignore=ignored)
    except OSError as error:
        raise write_error(out, error) from None
    written = [str((out / name).absolute()) for name in _NAMES]
    emit({"written": written}, as_json, "\n".join(written))
