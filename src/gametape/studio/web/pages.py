"""The pages about runs. Each reads what it shows, within its bounds, and leaves the drawing to a template."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path
from gametape.studio.page import printable_text
from gametape.studio.sections.evaluation import evaluation_section
from gametape.studio.web.catalogue import FoundRun, find_rollout, group_of, rollout_files
from gametape.studio.web.rollout_table import PAGE, by_cost
from gametape.studio.web.run_rows import RunRow, read_config, run_rows
from gametape.studio.web.site import StudioSite, site_of

TRAINING_TABS = (
    ("run", "Curves"),
    ("rollouts", "Rollouts"),
    ("tasks", "Tasks"),
    ("integrity", "Integrity"),
    ("costs", "Costs"),
    ("behaviour", "Behaviour"),
    ("evaluation", "Evaluations"),
)
EVAL_TABS = (("evaluation", "Evaluation"), *TRAINING_TABS[1:5], ("calibration", "Calibration"))
RECORD_TABS = (
    ("tape", "Tape"),
    ("behaviour", "Behaviour"),
    ("integrity", "Integrity"),
    ("costs", "Costs"),
    ("calibration", "Calibration"),
)
RESULT_TABS = (("result", "Result"), *RECORD_TABS)
_MOST_COMPARED = 12
_MOST_SETTINGS = 200
_MOST_ALARMS = 100
_MOST_READ = 500
"""Rollouts that a table over a whole run takes in, the newest first."""
_MOST_ATTEMPT_BYTES = 64 << 20


def page_routes() -> list[Route]:
    pages: dict[str, Callable[[Request], Response]] = {
        "/": show_runs,
        "/run": show_run,
        "/rollouts": show_rollouts,
        "/tape": show_tape,
        "/costs": show_costs,
        "/evaluation": show_evaluation,
    }
    return [Route(path, page) for path, page in pages.items()]


def show_runs(request: Request) -> Response:
    site = site_of(request)
    found, more = site.catalogue.list()
    directory = printable_path(site.catalogue.runs)
    return site.page("runs.html.jinja", title="Runs", page="runs", rows=run_rows(found), more=more, directory=directory)


def show_run(request: Request) -> Response:
    site = site_of(request)
    names = requested_names(request)
    runs = [site.catalogue.find(name) for name in names]
    if all(run.place.kind == "eval" for run in runs):
        return RedirectResponse(f"/evaluations?{urlencode([('run', name) for name in names])}", 303)
    for run in runs:
        if run.place.kind != "training":
            raise BadInput(f"{run.name}: not a training run, so it has no curves")
    one = names[0] if len(names) == 1 else None
    page = f"Run {one}" if one else f"{len(names)} runs"
    return site.page("run.html.jinja", title=page, page="run", run=one, tabs=TRAINING_TABS, **run_data(site, runs))


def run_data(site: StudioSite, runs: list[FoundRun]) -> dict[str, Any]:
    """What the page about runs beside each other shows: their heads, alarms and settings."""
    by_name = {row.name: row for row in run_rows(runs)}
    settings = [_settings(run) for run in runs]
    names = sorted({name for flat in settings for name in flat})
    rows = [(name, [flat.get(name, "-") for flat in settings]) for name in names]
    curves = {run.name: site.curves.read(run.place.path / "metrics.jsonl") for run in runs}
    alarms = [(run.name, alarm) for run in runs for alarm in curves[run.name].alarms]
    return {
        "rows": [by_name[run.name] for run in runs],
        "names": [run.name for run in runs],
        "alarms": alarms[-_MOST_ALARMS:],
        "differences": [row for row in rows if len(set(row[1])) > 1][:_MOST_SETTINGS],
        "config": [(name, values[0]) for name, values in rows[:_MOST_SETTINGS]],
    }


def show_rollouts(request: Request) -> Response:
    site, run = site_of(request), requested_run(request)
    files = rollout_files(run.place)
    first = min(_whole(request, "first"), max(0, len(files) - 1))
    shown = files[first : first + PAGE]
    facts, _ = site.rollouts.read(shown)
    read = {fact.name for fact in facts}
    return site.page(
        "rollouts.html.jinja",
        title=f"Rollouts of {run.name}",
        **page_tabs(run, "rollouts"),
        facts=facts,
        unread=[file for file in shown if file.name not in read],
        first=first,
        shown=len(shown),
        earlier=max(0, first - PAGE),
        total=len(files),
        state=_row(run).state,
        address=tape_address(run),
        group_address=lambda name: f"/group?{urlencode({'run': run.name, 'group': group_of(name)})}",
    )


def show_tape(request: Request) -> Response:
    site, run = site_of(request), requested_run(request)
    rollout = find_rollout(run, request.query_params.get("rollout", ""))
    title = f"{rollout.name} of {run.name}"
    subagent = request.query_params.get("subagent", "")
    return site.page("tape.html.jinja", title=title, **page_tabs(run, "tape"), rollout=rollout.name, subagent=subagent)


def show_costs(request: Request) -> Response:
    site, run = site_of(request), requested_run(request)
    facts, left_out, total = newest_facts(site, run)
    data: dict[str, Any] = {"costs": by_cost(facts), "read": len(facts), "left_out": left_out, "total": total}
    return site.page("costs.html.jinja", title=f"Costs of {run.name}", **page_tabs(run, "costs"), **data)


def show_evaluation(request: Request) -> Response:
    site, run = site_of(request), requested_run(request)
    shown: dict[str, Any] = {"title": f"Evaluations of {run.name}", "data": None, "scores": []}
    if run.place.kind == "eval":
        if (run.place.path / "attempts.jsonl").stat().st_size > _MOST_ATTEMPT_BYTES:
            raise BadInput(f"{run.name}: too large to be shown here; report.json in it has the estimates")
        section = evaluation_section(run.place)
        shown = {"title": section.title, "data": section.data, "scores": []}
    elif run.place.kind == "training":
        shown["scores"] = site.curves.read(run.place.path / "metrics.jsonl").evals
    return site.page("evaluation_page.html.jinja", **page_tabs(run, "evaluation"), **shown)


def requested_names(request: Request) -> list[str]:
    """The runs that were marked in the list, each once. Raises `BadInput` where there are none."""
    names = list(dict.fromkeys(request.query_params.getlist("run")))[:_MOST_COMPARED]
    if not names:
        raise BadInput("no run was chosen: mark some in the list of runs")
    return names


def requested_run(request: Request) -> FoundRun:
    """The run that the address names. Raises `NotThere`."""
    return site_of(request).catalogue.find(request.query_params.get("run", ""))


def page_tabs(run: FoundRun, page: str) -> dict[str, Any]:
    """The run that a page is about, and the pages beside it."""
    by_kind = {"training": TRAINING_TABS, "eval": EVAL_TABS, "goal": RESULT_TABS, "attempt": RESULT_TABS}
    tabs = by_kind.get(run.place.kind, RECORD_TABS)
    return {"run": run.name, "page": page, "tabs": tabs}


def _row(run: FoundRun) -> RunRow:
    return run_rows([run])[0]


def newest_facts(site: StudioSite, run: FoundRun) -> tuple[list[Any], int, int]:
    """Facts on the newest rollouts, how many were left out, and how many there are."""
    files = sorted(rollout_files(run.place), key=lambda file: -file.changed)
    facts, _ = site.rollouts.read(files[:_MOST_READ])
    return facts, len(files) - len(facts), len(files)


def tape_address(run: FoundRun) -> Callable[[str, int], str]:
    def address(rollout: str, step: int) -> str:
        return f"/tape?{urlencode({'run': run.name, 'rollout': rollout})}{f'#step={step}' if step else ''}"

    return address


def _whole(request: Request, name: str) -> int:
    """A number from 0 in the address; 0 where there is none."""
    text = request.query_params.get(name, "0")
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadInput(f"{name}: expected a whole number from 0, not {text[:20]!r}")
    return int(text)


def _settings(run: FoundRun) -> dict[str, str]:
    """Settings by their dotted names; none where the file is no configuration."""
    try:
        return dict(_flat(read_config(run.place.path)))
    except (OSError, ValueError):
        return {}


def _flat(config: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    settings = []
    for name, value in config.items():
        inside = _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else None
        settings += inside if inside is not None else [(printable_text(f"{prefix}{name}"), printable_text(str(value)))]
    return settings
