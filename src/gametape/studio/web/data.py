"""The data behind the pages, as JSON and as events. An exported file holds the same answers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gametape.core.errors import BadInput
from gametape.studio.web.catalogue import FoundRun, RolloutFile, find_rollout
from gametape.studio.web.live import follow_log
from gametape.studio.web.run_rows import run_rows
from gametape.studio.web.site import StudioSite, site_of
from gametape.studio.web.step_means import step_means
from gametape.studio.web.subagent_tape import subagent_tape
from gametape.studio.web.tape import SLICE, Tape, tape_slice, tape_summary
from gametape.studio.web.target_log import TargetLog

MOST_FOLLOWERS = 64
"""Pages that may be followed live at the same time."""


def data_routes() -> list[Route]:
    return [
        Route("/data/runs", send_runs),
        Route("/data/series", send_series),
        Route("/data/tape", send_tape),
        Route("/data/steps", send_steps),
        Route("/events", send_events),
    ]


def send_runs(request: Request) -> Response:
    found, _ = site_of(request).catalogue.list()
    return JSONResponse({"rows": [row.to_dict() for row in run_rows(found)]})


def send_series(request: Request) -> Response:
    return JSONResponse(series_answer(site_of(request), _run(request)))


def send_tape(request: Request) -> Response:
    run = _run(request)
    rollout = find_rollout(run, request.query_params.get("rollout", ""))
    return JSONResponse(tape_answer(site_of(request), run, rollout, request.query_params.get("subagent", "")))


def send_steps(request: Request) -> Response:
    run = _run(request)
    rollout = find_rollout(run, request.query_params.get("rollout", ""))
    subagent = request.query_params.get("subagent", "")
    return JSONResponse(steps_answer(site_of(request), run, rollout, _offset(request, "first"), subagent))


async def send_events(request: Request) -> Response:
    """What the log of a run gets after a number of bytes, until the page is closed."""
    run = await run_in_threadpool(_run, request)
    last = request.headers.get("last-event-id", "")
    offset = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else _offset(request, "after")
    followers: set[int] = request.app.state.followers
    if len(followers) >= MOST_FOLLOWERS:
        return JSONResponse({"error": "too many pages are open; close some"}, 503)

    async def events() -> AsyncIterator[bytes]:
        number = id(request)
        followers.add(number)
        try:
            async for event in follow_log(run.place.path / "metrics.jsonl", offset, request.is_disconnected):
                yield event
        except asyncio.CancelledError:
            return
        finally:
            followers.discard(number)

    return StreamingResponse(events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def series_answer(site: StudioSite, run: FoundRun) -> dict[str, Any]:
    return site.curves.read(run.place.path / "metrics.jsonl").to_dict()


def tape_answer(site: StudioSite, run: FoundRun, rollout: RolloutFile, subagent: str = "") -> dict[str, Any]:
    title = subagent or (run_rows([run])[0].what if run.place.kind in ("goal", "thread") else "")
    tape = _tape(site, rollout, subagent)
    summary = tape_summary(tape, rollout.name, title)
    means = step_means(tape, rollout.name, _targets(site, run, subagent), summary["advantage"])
    return summary | {"means": means}


def steps_answer(
    site: StudioSite, run: FoundRun, rollout: RolloutFile, first: int, subagent: str = ""
) -> dict[str, Any]:
    tape = _tape(site, rollout, subagent)
    if first % SLICE or (first and first >= len(tape.facts)):
        raise BadInput(f"first: expected a multiple of {SLICE} below {len(tape.facts)}")
    targets = _targets(site, run, subagent)
    return tape_slice(tape, first, targets, rollout.name, site.texts.of_run(run.place.path))


def _targets(site: StudioSite, run: FoundRun, subagent: str) -> TargetLog | None:
    return site.targets.of_run(run.place.path) if run.place.kind == "training" and not subagent else None


def _tape(site: StudioSite, rollout: RolloutFile, subagent: str) -> Tape:
    tape = site.tapes.open(rollout.path)
    return subagent_tape(tape, subagent) if subagent else tape


def _run(request: Request) -> FoundRun:
    return site_of(request).catalogue.find(request.query_params.get("run", ""))


def _offset(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise BadInput(f"{name}: expected a whole number from 0, not {text[:20]!r}")
    return int(text)
