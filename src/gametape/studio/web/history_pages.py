"""What changed over time: attempts against the grader by rule, and what passed by kind of task."""

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gametape.studio.sections.json_file import read_json
from gametape.studio.step_view import count
from gametape.studio.web.pages import newest_facts, page_tabs, requested_run, tape_address
from gametape.studio.web.periods import RolloutTimeline, timeline
from gametape.studio.web.rollout_table import by_task
from gametape.studio.web.site import site_of
from gametape.studio.web.task_history import TaskHistory, read_task_history
from gametape.studio.web.task_reference import deleted_lines

MOST_LINES = 7
"""In one chart."""
_MOST_RULES = 12
_MOST_REFERENCES = 60
_MOST_FLAGS_LISTED = 1_000


def history_routes() -> list[Route]:
    return [Route("/tasks", show_tasks), Route("/integrity", show_integrity)]


def show_tasks(request: Request) -> Response:
    site, run = site_of(request), requested_run(request)
    facts, left_out, total = newest_facts(site, run)
    history, cut = read_task_history(run.place.path / "metrics.jsonl")
    tallies, over_time = by_task(facts), timeline(facts)
    named = ((row.task, deleted_lines(site.catalogue, run, row.task)) for row in tallies[:_MOST_REFERENCES])
    data: dict[str, Any] = {
        "tallies": tallies,
        "history": history,
        "cut": cut,
        "charts": [*_rate_chart(history), *_kept_chart(over_time)],
        "deleted": {task: lines for task, lines in named if lines},
        "left_out": left_out,
        "total": total,
    }
    return site.page("tasks.html.jinja", title=f"Tasks of {run.name}", **page_tabs(run, "tasks"), **data)


def show_integrity(request: Request) -> Response:
    site, run = site_of(request), requested_run(request)
    facts, left_out, total = newest_facts(site, run)
    flags = [flag for fact in facts for flag in fact.flags]
    over_time = timeline(facts)
    data: dict[str, Any] = {
        "flags": flags[:_MOST_FLAGS_LISTED],
        "flag_count": len(flags),
        "periods": over_time.periods,
        "rules": over_time.rules[:_MOST_RULES],
        "more_rules": max(0, len(over_time.rules) - _MOST_RULES),
        "charts": _rule_chart(over_time),
        "read": len(facts),
        "left_out": left_out,
        "total": total,
        "address": tape_address(run),
    }
    if run.place.kind == "eval":
        data["hacked"] = count(read_json(run.place.path / "report.json").get("hacked"))
    return site.page("integrity.html.jinja", title=f"Integrity of {run.name}", **page_tabs(run, "integrity"), **data)


def _rule_chart(over_time: RolloutTimeline) -> list[dict[str, Any]]:
    """Flags for a rollout: with more rollouts in a period there would be more flags anyway."""
    if len(over_time.periods) < 2 or not over_time.rules:
        return []
    lines = [
        {"name": rule, "points": [[one.at, len(one.flags_of(rule)) / len(one.facts)] for one in over_time.periods]}
        for rule in over_time.rules[:MOST_LINES]
    ]
    return [{"title": "Flags for a rollout, by rule", "lines": lines, "xLabel": over_time.unit}]


def _rate_chart(history: Sequence[TaskHistory]) -> list[dict[str, Any]]:
    shown = [kind for kind in history if len(kind.points) > 1][:MOST_LINES]
    if not shown:
        return []
    title = "Share that passed lately, by kind of task" + (", the hardest" if len(history) > len(shown) else "")
    lines = [{"name": kind.name, "points": kind.points} for kind in shown]
    return [{"title": title, "lines": lines, "range": [0, 1]}]


def _kept_chart(over_time: RolloutTimeline) -> list[dict[str, Any]]:
    if len(over_time.periods) < 2:
        return []
    points = [[one.at, one.passed / len(one.facts)] for one in over_time.periods]
    title, line = "Kept rollouts: the share that passed", {"name": "passed", "points": points}
    return [{"title": title, "lines": [line], "range": [0, 1], "xLabel": over_time.unit}]
