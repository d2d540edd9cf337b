"""What a goal or an attempt came to: each try with what tampering was found, the verdict by layer, and the patch."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gametape.core.errors import BadInput
from gametape.record.regular_file import read_beginning
from gametape.studio.sections.json_file import read_json
from gametape.studio.step_view import mapping, mappings, tame_numbers, text_of
from gametape.studio.web.catalogue import FoundRun, find_rollout
from gametape.studio.web.pages import page_tabs, requested_run
from gametape.studio.web.site import StudioSite, site_of
from gametape.studio.web.task_reference import deleted_lines

_MOST_PATCH_BYTES = 400_000


def result_routes() -> list[Route]:
    return [Route("/result", show_result)]


def show_result(request: Request) -> Response:
    site, run = site_of(request), requested_run(request)
    if run.place.kind not in ("goal", "attempt"):
        raise BadInput(f"{run.name}: neither a goal nor an attempt, so it has no result")
    data = _goal(run) if run.place.kind == "goal" else _attempt(site, run)
    return site.page("result.html.jinja", title=f"Result of {run.name}", data=data, **page_tabs(run, "result"))


def _goal(run: FoundRun) -> dict[str, Any]:
    goal, result = (tame_numbers(read_json(run.place.path / f"{name}.json")) for name in ("goal", "result"))
    state = "open" if not result else "reached" if result.get("reached") is True else "not reached"
    return {
        "state": state,
        "instruction": text_of(goal.get("instruction")),
        "success": text_of(goal.get("success")),
        "reason": text_of(result.get("reason")),
        "assurance": text_of(result.get("assurance")),
        "branch": text_of(result.get("branch")),
        "attempts": [
            {
                "n": attempt.get("n"),
                "criterion": mapping(attempt.get("criterion")),
                "tokens": attempt.get("tokens"),
                "cost_usd": attempt.get("cost_usd"),
                "tampering": mappings(attempt.get("tampering")),
            }
            for attempt in mappings(result.get("attempts"))
        ],
        "patch": _patch(run),
    }


def _attempt(site: StudioSite, run: FoundRun) -> dict[str, Any]:
    tape = site.tapes.open(find_rollout(run, "").path)
    verdict = mapping(tame_numbers(mapping(tape.extra.get("verdict"))))
    return {
        "state": tape.outcome,
        "instruction": text_of(tape.extra.get("task")),
        "reason": text_of(tape.extra.get("reason")),
        "assurance": text_of(verdict.get("assurance")),
        "checks": mappings(verdict.get("checks")),
        "flags": mappings(verdict.get("integrity")),
        "failures": mappings(verdict.get("failures")),
        "patch": _patch(run),
        "deleted": deleted_lines(site.catalogue, run, text_of(tape.extra.get("task"))),
    }


def _patch(run: FoundRun) -> str:
    """The beginning of the patch, empty where there is none."""
    try:
        return read_beginning(run.place.path / "patch.diff", _MOST_PATCH_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
