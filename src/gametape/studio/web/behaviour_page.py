"""How an agent behaved over a whole log: what the monitors of `gametape watch` say of it, and where they speak up.

The log is that of a run's rollouts, else its one record. Only its beginning is watched, up to a number of steps, and
what was found is kept until the file changes.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path, read_error
from gametape.studio.web.catalogue import FoundRun
from gametape.studio.web.pages import page_tabs, requested_run
from gametape.studio.web.site import site_of
from gametape.watch.log_reader import read_log
from gametape.watch.monitor_set import BASELINE, MonitorSet, baseline_length
from gametape.watch.report import WatchReport

MOST_STEPS = 5_000
_MOST_BYTES = 64 << 20
_MOST_ALARMS = 200


@dataclass(frozen=True)
class WatchedLog:
    """`more` says that the log has steps that were not watched. `lines` are the monitors' evidence over time."""

    steps: int
    more: bool
    monitors: list[dict[str, Any]]
    alarms: list[dict[str, Any]]
    lines: list[tuple[str, str]]


def behaviour_routes() -> list[Route]:
    return [Route("/behaviour", show_behaviour)]


def show_behaviour(request: Request) -> Response:
    site, run = site_of(request), requested_run(request)
    log = _log_of(run)
    watched = None
    if log is not None:
        status = log.stat()
        if status.st_size > _MOST_BYTES:
            raise BadInput(f"{printable_path(log)}: too large to be watched here; gametape watch reads it")
        watched = watch_log(log, status.st_size, status.st_mtime_ns)
    title = f"Behaviour of {run.name}"
    has_steps = log is not None and run.place.kind != "training"
    return site.page(
        "behaviour.html.jinja", title=title, watched=watched, linked=has_steps, **page_tabs(run, "behaviour")
    )


@lru_cache(maxsize=64)
def watch_log(log: Path, size: int, changed: int) -> WatchedLog:  # noqa: ARG001 - they tell that it is still the same
    """What the monitors say of a log. Raises `BadInput`."""
    try:
        steps = [*islice(read_log(log), MOST_STEPS + 1)]
    except OSError as error:
        raise read_error(log, error) from None
    watched = steps[:MOST_STEPS]
    report = WatchReport(MonitorSet(baseline_length(len(watched)) if watched else BASELINE))
    for step in watched:
        report.observe(step)
    told = report.to_dict()
    threshold = max((monitor["threshold"] for monitor in told["monitors"]), default=1.0)
    lines = [(name, sparkline.line(threshold)) for name, sparkline in report.sparklines.items()]
    return WatchedLog(
        steps=len(watched),
        more=len(steps) > MOST_STEPS,
        monitors=told["monitors"],
        alarms=[
            {"monitor": episode.alarm.monitor, "step": episode.step, "until": episode.until, "times": episode.times,
             "details": episode.details}
            for episode in report.episodes[:_MOST_ALARMS]
        ],
        lines=lines,
    )  # fmt: skip


def _log_of(run: FoundRun) -> Path | None:
    log = run.place.path / "behaviour.jsonl" if run.place.kind == "training" else run.place.trajectory
    return log if log is not None and log.is_file() and not log.is_symlink() else None
