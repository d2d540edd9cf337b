"""`gametape studio`: look at runs in the browser, live, or put one into a file."""

from pathlib import Path
from typing import Annotated

import typer

from gametape.cli.shared import AsJson, Database, Home, emit, emit_json
from gametape.record.home import home_directory

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    invoke_without_command=True,
    no_args_is_help=False,
)

RunsDir = Annotated[Path, typer.Option("--runs", metavar="DIR", help="The directory of runs.")]


@app.callback()
def studio(
    context: typer.Context,
    runs: RunsDir = Path("runs"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any free one.")] = 7337,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen. Beyond this machine everybody needs a token.")
    ] = "127.0.0.1",
    home: Home = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Look at runs in the browser, live, and decide what waits on the desk.

    Serves one page until Ctrl-C: curves with alarms, every rollout turn by turn and token by token with what the coach
    said, tasks, flags, costs, evaluations, and the desk. It listens on this machine only, sends nothing anywhere, and
    runs nothing that it shows.

    Exit code 0, 2 for something that is no directory, 3 if the port is taken.

    \b
    Examples:
      gametape studio
      gametape studio --runs runs/demo --port 0
      gametape studio export runs/demo/rlvr_ttf --out run.html
    """
    if context.invoked_subcommand is not None:
        return
    from gametape.core.errors import BadInput
    from gametape.record.errors import printable_path
    from gametape.studio.web.catalogue import RunCatalogue
    from gametape.studio.web.server import bind_studio, serve_studio
    from gametape.studio.web.site import StudioSite

    if runs.exists() and not runs.is_dir():
        raise BadInput(f"{printable_path(runs)}: not a directory; give --runs a directory of runs")
    site = StudioSite(RunCatalogue(runs.absolute(), home_directory(home)), database)
    bound = bind_studio(host, port)

    def tell(address: str) -> None:
        if as_json:
            emit_json({"address": address, "runs": str(site.catalogue.runs), "home": str(site.catalogue.home)})
        else:
            typer.echo(f"{address}  (Ctrl-C ends it)")

    serve_studio(site, bound, tell)


@app.command()
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run, or a trajectory file.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")] = Path("studio.html"),
    as_json: AsJson = False,
) -> None:
    """Put a run into one HTML file that opens from disk: curves, alarms, settings, and the tapes of its rollouts.

    The file has the same pages as the server, its scripts and its data in it, and fetches nothing. Of a large run the
    newest rollouts are taken, as many as there is room for, and the file says so. An earlier export is written over.

    Exit code 0, or 2 for something that is no run.

    Example: gametape studio export runs/demo/rlvr_ttf --out run.html
    """
    from gametape.record.errors import printable_path
    from gametape.studio.web.export import write_export

    written = write_export(run, out)
    answer = {
        "written": str(written.path),
        "bytes": written.size,
        "rollouts": written.rollouts,
        "rollouts_left_out": written.left_out,
    }
    emit(answer, as_json, printable_path(written.path))
