"""The output of `gametape eval` as a section: rates with their intervals, survival by step, and what each task took."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from gametape.studio.line_chart import ChartSeries, line_chart
from gametape.studio.page import ReportSection, printable_text
from gametape.studio.run_place import RunPlace
from gametape.studio.sections.json_file import read_json, read_json_lines
from gametape.studio.step_view import amount, count, mapping, mappings, text_of

_MOST_TASKS = 200


def evaluation_section(place: RunPlace) -> ReportSection:
    report = read_json(place.path / "report.json")
    attempts = [line for line in read_json_lines(place.path / "attempts.jsonl") if "task" in line]
    tasks = _by_task(attempts)
    data = {
        "report": report,
        "success": mapping(report.get("success")),
        "cost": mapping(report.get("cost_per_success")),
        "attempts": len(attempts),
        "passed": sum(attempt.get("passed") is True for attempt in attempts),
        "tasks": tasks[:_MOST_TASKS],
        "more_tasks": max(0, len(tasks) - _MOST_TASKS),
        "horizons": mappings(report.get("by_horizon")),
        "charts": _charts(report),
    }
    suite = text_of(report.get("suite")).rpartition("/")[2] or place.path.name
    return ReportSection(f"Evaluation of {text_of(report.get('model')) or 'a model'} on {suite}", _TEMPLATE, data)


_TEMPLATE = "evaluation.html.jinja"


def _by_task(attempts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for attempt in attempts:
        name = text_of(attempt["task"])
        row = rows.setdefault(name, {"task": name, "attempts": 0, "passed": 0, "tokens": 0, "seconds": 0.0, "why": ""})
        row["attempts"] += 1
        row["passed"] += attempt.get("passed") is True
        row["tokens"] += count(attempt.get("tokens"))
        row["seconds"] += amount(attempt.get("seconds"))
        if attempt.get("passed") is not True:
            row["why"] = text_of(attempt.get("reason")) or text_of(attempt.get("outcome"))
    return sorted(rows.values(), key=lambda row: (row["passed"] / row["attempts"], row["task"]))


def _charts(report: Mapping[str, Any]) -> list[Markup]:
    points = [point for point in mappings(report.get("survival")) if "step" in point]
    if len(points) < 2:
        return []
    columns = {name: [amount(point.get(name)) for point in points] for name in ("step", "s", "low", "high")}
    name = printable_text(text_of(report.get("model")) or "attempts")
    series = ChartSeries(name, columns["step"], columns["s"], columns["low"], columns["high"])
    return [Markup(line_chart("Attempts still on track", [series], "turn", "share", size=(520, 300)))]
