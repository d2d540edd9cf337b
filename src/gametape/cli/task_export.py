"""`gametape task export`: write tasks in the formats of other tools."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from gametape.cli.shared import AsJson, emit
from gametape.record.errors import printable_path


def export(
    tasks: Annotated[list[Path], typer.Argument(metavar="TASK", help="Task directories.")],
    form: Annotated[
        Literal["swebench", "verifiers"],
        typer.Option(
            "--format",
            help="swebench: a file of instances, one JSON object to a line. "
            "verifiers: a directory with a Python package that the verifiers library loads as a task set.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="PATH", help="A new file (swebench) or directory (verifiers).")],
    as_json: AsJson = False,
) -> None:
    """Write tasks in another format, for a grader: held-out tests and solutions are included.

    Nothing is run and nothing is built. If it cannot be written whole, nothing is left behind.

    \b
    Exit code 0, or 2 if a TASK is not valid or has no solution, or PATH cannot be written.

    \b
    Examples:
      gametape task export examples/tasks/slugs --format swebench --out slugs.jsonl
      gametape task export examples/tasks/* --format verifiers --out my-tasks
    """
    from gametape.tasks.export import read_exportable_tasks
    from gametape.tasks.export_swebench import export_swebench
    from gametape.tasks.export_verifiers import export_verifiers

    loaded_tasks = read_exportable_tasks(tasks)
    written = (export_swebench if form == "swebench" else export_verifiers)(loaded_tasks, out)
    emit(
        {"written": [str(written.absolute())]},
        as_json,
        f"{printable_path(written)}: {len(loaded_tasks)} task{'' if len(loaded_tasks) == 1 else 's'}",
    )
