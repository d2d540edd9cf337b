"""How well an agent's forecasts of success hold: each score with its interval, over the newest rollouts of a run."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gametape.core.errors import BadInput
from gametape.record.regular_file import read_regular
from gametape.record.trajectory_file import parse_bytes, require_trajectory
from gametape.studio.web.catalogue import rollout_files
from gametape.studio.web.pages import page_tabs, requested_run
from gametape.studio.web.site import site_of
from gametape.watch.calibration import (
    ForecastAttempt,
    ForecastOutcomes,
    forecast_attempt,
    forecasts_by_kind,
    score_forecasts,
)

MOST_ROLLOUTS = 500
_MOST_BYTES = 64 << 20


def calibration_routes() -> list[Route]:
    return [Route("/calibration", show_calibration)]


def show_calibration(request: Request) -> Response:
    site, run = site_of(request), requested_run(request)
    files = sorted(rollout_files(run.place), key=lambda file: -file.changed)
    attempts, read, room = [], 0, _MOST_BYTES
    for file in files[:MOST_ROLLOUTS]:
        room -= file.size
        if room < 0:
            break
        read += 1
        attempts += _forecast(file.path, file.size, file.changed)
    data: dict[str, Any] = {
        "n": len(attempts),
        "passed": sum(attempt.passed for attempt in attempts),
        "left_out": len(files) - read,
        "total": len(files),
        "scores": {kind: _scores(tuple(sorted(pairs))) for kind, pairs in forecasts_by_kind(attempts).items() if pairs},
    }
    title = f"Calibration of {run.name}"
    return site.page("calibration.html.jinja", title=title, **page_tabs(run, "calibration"), **data)


@lru_cache(maxsize=64)
def _scores(pairs: ForecastOutcomes) -> dict[str, Any]:
    """They take a bootstrap."""
    return score_forecasts(pairs).to_dict()


@lru_cache(maxsize=4 * MOST_ROLLOUTS)
def _forecast(path: Path, size: int, changed: float) -> list[ForecastAttempt]:  # noqa: ARG001 - they tell a new file
    """Nothing of a record that cannot be read, or has no outcome yet."""
    try:
        attempt = forecast_attempt(require_trajectory(parse_bytes(read_regular(path, _MOST_BYTES)), path))
    except (BadInput, OSError):
        return []
    return [attempt] if attempt is not None else []
