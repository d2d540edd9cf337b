"""`gametape desk`: the process that runs goals, threads and heartbeats."""

import asyncio
import math
import time
from typing import Annotated

import typer

from gametape.cli.shared import AsJson, Database, Home, emit_json, open_desk, printable_line
from gametape.record.installation import command_line

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Run goals, threads and heartbeats, and keep running them.",
)


@app.command()
def serve(home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Run submitted and unfinished jobs, and schedule heartbeats, until Ctrl-C.

    After a kill, the next one continues where it was. One process serves a database: exit code 1 if another one does.

    Example: gametape desk serve
    """

    from gametape.desk.server import serve as run
    from gametape.watch.text_features import printable

    started = time.time()
    with open_desk(home, database) as desk:
        asyncio.run(run(desk, lambda line: typer.echo(f"{time.strftime('%H:%M:%S')} {printable(line)}", err=True)))
        if as_json:
            emit_json({"home": str(desk.home), "seconds": time.time() - started})


@app.command()
def repair(home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Make a new database of what can be had of a damaged one, and say what is lost.

    It takes what can be read, then what only the backups have, and binds heartbeats to their threads again. Nothing is
    deleted: the damaged files are kept. A database that is whole is left as it is. Exit code 1 while the desk is run.

    Example: gametape desk repair
    """
    from dataclasses import asdict

    from gametape.desk.repair import repair as mend
    from gametape.record.home import home_directory

    report = mend(home_directory(home), database)
    if as_json:
        emit_json(asdict(report))
        return
    if not report.damaged:
        typer.echo(f"{report.database}: is whole")
    else:
        typer.echo(f"{report.database}: was damaged ({printable_line(report.damaged)}), and is new")
        typer.echo(f"read from it: {_rows(report.read)}")
        typer.echo(f"from backups: {_rows(report.restored)}")
        if report.rebuilt:
            typer.echo(f"heartbeats bound to their threads again: {', '.join(report.rebuilt)}")
        typer.echo(f"the damaged files are in {report.kept}")
    for sentence in report.lost:
        typer.echo(sentence)


def _rows(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} of {table}" for table, count in counts.items()) or "nothing"


@app.command()
def digest(
    hours: Annotated[float, typer.Option(min=0.1, max=8784, help="How far back it goes.")] = 24.0,
    home: Home = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Tell what your agents did, what they cost, and what is worth a worry. No model is asked.

    A heartbeat with `digest: true` tells it every day (docs/desk.md).

    Example: gametape desk digest --hours 48
    """
    from gametape.core.errors import BadInput
    from gametape.desk.digest import last_hours
    from gametape.watch.text_features import printable

    if math.isnan(hours):
        raise BadInput("--hours: expected a number of hours")
    with open_desk(home, database) as desk:
        told = last_hours(desk, hours)
    if as_json:
        spent = [{"name": name, "tokens": tokens, "cost_usd": usd} for name, tokens, usd in told.spent]
        sums = {"tokens": told.tokens, "cost_usd": told.cost_usd, "spent": spent}
        emit_json({"since": told.since, "until": told.until, "did": told.did, **sums, "worries": told.worries})
        return
    for line in told.text.splitlines():
        typer.echo(printable(line))


@app.command()
def status(home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Show who runs the desk, the unfinished jobs, and the notifications of the last day.

    Example: gametape desk status
    """

    from gametape.desk.runner import lock_holder, try_runner_lock
    from gametape.desk.workflow_engine import open_job_client
    from gametape.watch.text_features import printable

    with open_desk(home, database) as desk:
        lock = try_runner_lock(desk)
        if lock is not None:
            lock.release()
        runner = None if lock is not None else lock_holder(desk)
        with open_job_client(desk) as jobs:
            unfinished = [{"key": key, "state": jobs.state(key)} for key in jobs.unfinished()]
        notices = [
            {"at": notice.at, "origin": notice.origin, "text": notice.text, "problem": notice.problem}
            for notice in desk.notifications.since(time.time() - 86_400)
        ]
    if as_json:
        emit_json({"runner": runner, "errands": unfinished, "notices": notices})
        return
    typer.echo(f"run by {runner}" if runner else f"nobody runs it; start it with: {command_line('desk', 'serve')}")
    for job in unfinished:
        typer.echo(f"{job['state']:8} {job['key']}")
    for notice in notices:
        moment = time.strftime("%a %H:%M", time.localtime(float(str(notice["at"]))))
        typer.echo(f"{moment}  {notice['origin']}: {printable(' '.join(str(notice['text']).split()))}")
