"""`gametape heartbeat`: an agent that looks at something again and again."""

import asyncio
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from gametape.cli.shared import AsJson, Database, Home, emit, emit_json, open_desk

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Let an agent look at something again and again, at no cost while nothing happens.",
)

Name = Annotated[str, typer.Argument(metavar="NAME")]


@app.command()
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Markdown with front matter; see docs/desk.md.")],
    name: Annotated[str | None, typer.Option(help="Default: the file's name.")] = None,
    home: Home = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Add a heartbeat. It ticks while `gametape desk serve` runs.

    A model, workspace or thread that is not there is refused. What its event looks at is looked at now: a change after
    this is seen, also one before the desk runs.

    Example: gametape heartbeat add nightly.md
    """

    from gametape.desk.heartbeats import registry
    from gametape.desk.heartbeats.config import load_config
    from gametape.desk.heartbeats.event_sources import read_fingerprints
    from gametape.desk.heartbeats.job import check_targets

    config, chosen = load_config(file), name or file.stem
    with open_desk(home, database) as desk:
        asyncio.run(check_targets(desk.home, config))
        registry.add(desk, chosen, file.read_text(encoding="utf-8"), asyncio.run(read_fingerprints(desk, config)))
        path = registry.path_of(desk, chosen)
    emit({"name": chosen, "file": str(path)}, as_json, f"{chosen}: added; it ticks while `gametape desk serve` runs")


@app.command("list")
def list_(home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """List heartbeats: when each ticks next, and what its last tick came to.

    Example: gametape heartbeat list
    """
    from gametape.desk.heartbeats.registry import heartbeat_names

    with open_desk(home, database) as desk:
        rows = [_row(desk, name) for name in heartbeat_names(desk)]
    if as_json:
        emit_json({"heartbeats": rows})
        return
    for row in rows:
        last = row["last"]
        last_text = f"last: {last['outcome']} {_moment(last['at'])}" if last else "has not ticked"
        coming = row["problem"] or ("paused" if row["paused"] else f"next: {_moment(row['next'])}")
        typer.echo(f"{row['name']:20}  {coming}  {last_text}  today: {row['tokens_today']} tokens")


@app.command()
def run(name: Name, home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Tick now, once. Guard and budget hold, active hours do not.

    Exit code 0 if the agent was asked, 1 if guard or budget kept it from that.

    Example: gametape heartbeat run nightly
    """

    from gametape.desk.heartbeats import registry
    from gametape.desk.runner import run_job
    from gametape.watch.text_features import printable

    with open_desk(home, database) as desk:
        config = registry.read_config(desk, name)
        job = registry.tick_job(desk, name, config, registry.tick_key(name, time.time()), "asked for by hand")
        result = asyncio.run(run_job(desk, job))
    emit({"name": name, "key": job.key, **result}, as_json, f"{result['outcome']}: {printable(str(result['detail']))}")
    raise typer.Exit(0 if result["outcome"] in ("asked", "nothing") else 1)


@app.command()
def log(
    name: Name,
    last: Annotated[int, typer.Option(metavar="N", min=1, help="How many ticks.")] = 50,
    home: Home = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Say what its ticks came to.

    Example: gametape heartbeat log nightly --last 5
    """

    from gametape.desk.heartbeats import registry
    from gametape.watch.text_features import printable

    with open_desk(home, database) as desk:
        ticks = registry.tick_log(desk, name, last)
        if not ticks:
            registry.read_config(desk, name)
    if as_json:
        emit_json({"name": name, "ticks": [asdict(tick) for tick in ticks]})
        return
    for tick in ticks:
        detail = " ".join(printable(tick.detail).split())
        typer.echo(f"{_moment(tick.at)}  {tick.outcome:8}  {tick.tokens} tokens  {detail[:200]}")


@app.command()
def pause(name: Name, home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Stop ticking until it is resumed. Example: gametape heartbeat pause nightly"""
    _pause(name, home, database, as_json, True)


@app.command()
def resume(name: Name, home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Tick again; what was missed meanwhile is not made up for. Example: gametape heartbeat resume nightly"""
    _pause(name, home, database, as_json, False)


@app.command()
def remove(name: Name, home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Remove a heartbeat; what its ticks came to is kept. Example: gametape heartbeat remove nightly"""
    from gametape.desk.heartbeats import registry

    with open_desk(home, database) as desk:
        registry.remove(desk, name)
    emit({"name": name, "removed": True}, as_json, f"{name}: removed")


def _pause(name: str, home: Path | None, database: str | None, as_json: bool, pause: bool) -> None:

    from gametape.desk.heartbeats import registry

    with open_desk(home, database) as desk:
        registry.set_paused(desk, name, time.time(), pause)
    emit({"name": name, "paused": pause}, as_json, f"{name}: {'paused' if pause else 'resumed'}")


def _row(desk: Any, name: str) -> dict[str, Any]:

    from gametape.core.errors import GametapeError
    from gametape.desk.heartbeats import registry
    from gametape.desk.heartbeats.cadence import next_tick
    from gametape.desk.heartbeats.job import midnight

    state, ticks = registry.load_state(desk, name), registry.tick_log(desk, name, 1)
    row: dict[str, Any] = {"name": name, "paused": state.paused, "last": asdict(ticks[0]) if ticks else None}
    try:
        config = registry.read_config(desk, name)
    except GametapeError as error:
        return {**row, "next": None, "problem": str(error), "tokens_today": 0, "cost_usd_today": 0.0}
    now = time.time()
    tick = next_tick(config.cadence_rule, config.hours, state.state, now, bool(state.event))
    tokens, usd = registry.spent_since(desk, name, midnight(config, now))
    return {**row, "next": tick.at, "problem": "", "tokens_today": tokens, "cost_usd_today": usd}


def _moment(at: float | None) -> str:

    return time.strftime("%a %d %b %H:%M:%S", time.localtime(at)) if at else "when something is seen"
