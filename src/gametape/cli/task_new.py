"""`gametape task new`: write a small task to start from."""

from pathlib import Path
from typing import Annotated

import typer

from gametape.cli.shared import AsJson, emit_json
from gametape.record.errors import printable_path
from gametape.record.installation import command_line

_PARTS = (
    ("instruction.md", "what the agent is told"),
    ("environment/workspace", "the tree it starts from, with the visible tests"),
    ("tests/suite", "the same tests, and the held-out ones beside them"),
    ("solution/files", "the reference: every file that it changes, whole"),
    ("task.toml", "which tests decide; each key is explained there"),
)


def new(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory, or an empty one.")],
    name: Annotated[
        str | None, typer.Option(metavar="OWNER/NAME", help="The task's name (default: my/DIR's name).")
    ] = None,
    module: Annotated[
        str | None, typer.Option(metavar="M", help="The module that the agent writes (default: DIR's name).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a task that passes `gametape task check` as it is: a stub, tests, a reference and an instruction to edit.

    \b
    Exit code 0, or 2 if DIR is not empty or a name cannot be used.

    \b
    Examples:
      gametape task new tasks/join-words
      gametape task new tasks/first --name acme/first --module first_steps
    """
    from gametape.tasks.scaffold import scaffold_task

    files = scaffold_task(directory, name, module)
    if as_json:
        emit_json({"task": str(directory.absolute()), "files": [str(path.absolute()) for path in files]})
        return
    place = printable_path(directory)
    typer.echo(f"{place}: a task to edit")
    for part, what in _PARTS:
        typer.echo(f"  {part:<22} {what}")
    typer.echo("then:")
    typer.echo(f"  {command_line('task', 'check', directory)} --hacks sample")
    typer.echo(f"  {command_line('solve', directory)} --model MODEL --out runs/first")
