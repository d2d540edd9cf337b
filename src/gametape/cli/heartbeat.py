"""`gametape heartbeat`: ask an agent on a schedule or on events."""

import asyncio
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from gametape.cli.model_option import ModelName, choose_model
from gametape.cli.shared import AsJson, Database, Home, emit, emit_json, open_desk

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Ask an agent on a schedule or on events, at no cost while nothing happens.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name, as `heartbeat list` shows it.")]


@app.command()
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Markdown with front matter; see docs/desk.md.")],
    name: Annotated[str | None, typer.Option(help="The heartbeat's name (default: the file's name).")] = None,
    model: ModelName = None,
    home: Home = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Add a heartbeat. It ticks while `gametape desk serve` runs.

    A missing model, workspace or thread is refused. Event sources are read now: every later change is an event, even
    one before the desk runs.

    Example: gametape heartbeat add nightly.md
    """

    from gametape.core.errors import BadInput
    from gametape.desk.heartbeats import registry
    from gametape.desk.heartbeats.config import load_config, parse_config, with_model
    from gametape.desk.heartbeats.event_sources import read_fingerprints
    from gametape.desk.heartbeats.job import check_targets
    from gametape.engines.model_aliases import absolute_model_name

    config, name = load_config(file), name or file.stem
    content = file.read_text(encoding="utf-8")
    if not config.thread and not config.digest and (model is not None or not config.model):
        if config.model:
            raise BadInput(f"{file} names a model already: {config.model}; give no --model")
        content = with_model(content, absolute_model_name(choose_model(model, config.workspace)))
        config = parse_config(content, str(file))
    with open_desk(home, database) as desk:
        asyncio.run(check_targets(desk.home, config))
        registry.check_circle(desk, name, config)
        registry.add(desk, name, content, asyncio.run(read_fingerprints(desk, config)))
        path = registry.path_of(desk, name)
    emit({"name": name, "file": str(path)}, as_json, f"{name}: added; it ticks while `gametape desk serve` runs")


@app.command("list")
def list_(home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """List heartbeats: when each ticks next, and the outcome of its last tick.

    Example: gametape heartbeat list
    """
    from gametape.desk.heartbeats.registry import heartbeat_names

    with open_desk(home, database) as desk:
        rows = [_row(desk, name) for name in heartbeat_names(desk)]
    if as_json:
        emit_json({"heartbeats": rows})
        return
    from gametape.terminal.table import Column, numbers, print_table
    from gametape.watch.text_features import printable

    cells = []
    for row in rows:
        last = row["last"]
        last_text = f"{last['outcome']} {_moment(last['at'])}" if last else "has not ticked"
        coming = printable(row["problem"]) or ("paused" if row["paused"] else _moment(row["next"]))
        cells.append((row["name"], coming, last_text, str(row["tokens_today"])))
    words = [Column("heartbeat"), Column("next", wraps=True), Column("last", wraps=True)]
    if cells:
        print_table([*words, *numbers("tokens today")], cells)
    else:
        typer.echo("no heartbeats yet")


@app.command()
def run(name: Name, home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Run one tick now. Guard and budget apply, active hours do not.

    Exit code 0 if the agent was asked or the digest told, 1 if the guard or the budget prevented it.

    Example: gametape heartbeat run nightly
    """

    from gametape.desk.heartbeats import registry
    from gametape.desk.runner import run_job
    from gametape.watch.text_features import printable

    with open_desk(home, database) as desk:
        config = registry.read_config(desk, name)
        job = registry.tick_job(desk, name, config, registry.tick_key(name, time.time()), "run by hand")
        result = asyncio.run(run_job(desk, job))
    detail = "\n".join(map(printable, str(result["detail"]).splitlines()))
    emit({"name": name, "key": job.key, **result}, as_json, f"{result['outcome']}: {detail}")
    raise typer.Exit(0 if result["outcome"] in ("asked", "nothing", "digest") else 1)


@app.command()
def log(
    name: Name,
    last: Annotated[int, typer.Option(metavar="N", min=1, help="The number of ticks.")] = 50,
    home: Home = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the outcomes of its ticks.

    Example: gametape heartbeat log nightly --last 5
    """

    from gametape.desk.heartbeats import registry
    from gametape.watch.text_features import one_line

    with open_desk(home, database) as desk:
        ticks = registry.tick_log(desk, name, last)
        if not ticks:
            registry.read_config(desk, name)
    if as_json:
        emit_json({"name": name, "ticks": [asdict(tick) for tick in ticks]})
        return
    for tick in ticks:
        detail = one_line(tick.detail)
        typer.echo(f"{_moment(tick.at)}  {tick.outcome:8}  {tick.tokens} tokens  {detail[:200]}")


@app.command()
def pause(name: Name, home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Pause a heartbeat.

    Example: gametape heartbeat pause nightly
    """
    _pause(name, home, database, as_json, True)


@app.command()
def resume(name: Name, home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Resume a heartbeat; missed ticks are not made up for.

    Example: gametape heartbeat resume nightly
    """
    _pause(name, home, database, as_json, False)


@app.command()
def remove(name: Name, home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Remove a heartbeat; the log of its ticks is kept.

    Example: gametape heartbeat remove nightly
    """
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
    from gametape.desk.heartbeats.cadence import bring_back, next_tick
    from gametape.desk.heartbeats.job import midnight

    state, ticks = registry.load_state(desk, name), registry.tick_log(desk, name, 1)
    row: dict[str, Any] = {"name": name, "paused": state.paused, "last": asdict(ticks[0]) if ticks else None}
    try:
        config = registry.read_config(desk, name)
    except GametapeError as error:
        return {**row, "next": None, "problem": str(error), "tokens_today": 0, "cost_usd_today": 0.0}
    now = time.time()
    cadence = bring_back(config.cadence_rule, state.state, now)
    tick = next_tick(config.cadence_rule, config.hours, cadence, now, bool(state.event))
    tokens, usd = registry.spent_since(desk, name, midnight(config, now))
    return {**row, "next": tick.at, "problem": "", "tokens_today": tokens, "cost_usd_today": usd}


def _moment(at: float | None) -> str:

    return time.strftime("%a %d %b %H:%M:%S", time.localtime(at)) if at else "on an event"
