"""`gametape report`: one HTML file about any runs."""

from pathlib import Path
from typing import Annotated

import typer

from gametape.cli.shared import AsJson, Home, emit
from gametape.record.home import home_directory

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Directories of runs, ids of goals or threads, trajectory files, a home, or `last`: the newest goal "
            "or thread in the home.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")] = Path("report.html"),
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Write a report on training runs, goals, threads, attempts, evaluations or trajectory files of any maker.

    It is one HTML file without a script: it opens from disk, on a phone too, and fetches nothing. Several training runs
    are compared. Very long runs are cut, and the page says where. An earlier report is written over.

    Exit code 0, or 2 for something that is no run.

    \b
    Examples:
      gametape report last
      gametape report runs/first
      gametape report runs/rlvr runs/rlvr-ttf --out comparison.html
      gametape report goal-20261115-3f9a2c other/agent/trajectory.json
    """
    from gametape.record.errors import printable_path
    from gametape.studio.report import write_report
    from gametape.studio.run_place import find_place

    root = home_directory(home)
    written = write_report([find_place(run, root) for run in runs], out)
    answer = {"written": str(written.path), "sections": written.sections, "steps_left_out": written.left_out}
    emit(answer, as_json, printable_path(written.path))
