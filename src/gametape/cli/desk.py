"""`gametape desk`: the process that runs goals, threads and heartbeats."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Run goals, threads and heartbeats, and keep running them."
)

Home = Annotated[Path | None, typer.Option(help="Where state is kept ($GAMETAPE_HOME, or the user's data directory).")]
Database = Annotated[
    str | None, typer.Option(metavar="URL", help="PostgreSQL instead of a file under the home ($GAMETAPE_DATABASE).")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on the last line of stdout.")]


@app.callback()
def group() -> None:
    """Run goals, threads and heartbeats, and keep running them."""


@app.command()
def serve(home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Run what is handed in and what was left, and look after the heartbeats, until Ctrl-C.

    Killed at any instant, the next one goes on where it was. There is one for a database: exit code 1 if another
    process is at it.

    Example: gametape desk serve
    """
    import asyncio
    import time

    from gametape.cli.shared import emit_json, home_directory
    from gametape.desk.desk import open_desk
    from gametape.desk.server import serve as run
    from gametape.watch.text_features import printable

    begun = time.time()
    with open_desk(home_directory(home), database) as desk:
        asyncio.run(run(desk, lambda line: typer.echo(f"{time.strftime('%H:%M:%S')} {printable(line)}", err=True)))
        if as_json:
            emit_json({"home": str(desk.home), "seconds": time.time() - begun})


@app.command()
def status(home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Say who runs the desk, what is under way, and what people were told in the last day.

    Example: gametape desk status
    """
    import time

    from gametape.cli.shared import emit_json, home_directory
    from gametape.desk.desk import open_desk
    from gametape.desk.runner import lock_holder, try_runner_lock
    from gametape.desk.workflow_engine import open_job_client
    from gametape.watch.text_features import printable

    with open_desk(home_directory(home), database) as desk:
        held = try_runner_lock(desk)
        if held is not None:
            held.release()
        runner = None if held is not None else lock_holder(desk)
        with open_job_client(desk) as errands:
            under_way = [{"key": key, "state": errands.state(key)} for key in errands.unfinished()]
        notices = [
            {"at": told.at, "origin": told.origin, "text": told.text, "problem": told.problem}
            for told in desk.notifications.since(time.time() - 86_400)
        ]
    if as_json:
        emit_json({"runner": runner, "errands": under_way, "notices": notices})
        return
    typer.echo(f"run by {runner}" if runner else "nobody runs it: gametape desk serve")
    for errand in under_way:
        typer.echo(f"{errand['state']:8} {errand['key']}")
    for told in notices:
        moment = time.strftime("%a %H:%M", time.localtime(float(str(told["at"]))))
        typer.echo(f"{moment}  {told['origin']}: {printable(' '.join(str(told['text']).split()))}")
