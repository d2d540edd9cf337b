"""`report.html`: the comparison of training runs, in one file that opens from disk and needs no network.

The template escapes everything that a model, a tool or a task wrote; the charts escape their own text. The page has no
script, and its content security policy forbids any.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from gametape.record.atomic import write_atomically
from gametape.studio.comparison import ArmComparison, compare_scores
from gametape.studio.line_chart import ChartSeries, line_chart
from gametape.studio.rollout_view import most_changed_rollout
from gametape.studio.run_files import RunFiles

ARM_LABELS = {"rlvr": "RLVR", "rlvr_ttf": "RLVR+TTF", "rlvr_ttf_gated": "RLVR+TTF, gated", "sft": "SFT"}
DEMO_SUMMARY_FILE = "demo.json"
_CHARTS = (
    ("Held-out success", "success", "episodes_so_far", "episodes, all of them"),
    ("Held-out success for what it took", "success", "flops", "operations, in millions"),
    ("Load-bearing turns that go right", "load_bearing", "episodes_so_far", "episodes, all of them"),
    ("Load-bearing turns that go right after a hint", "hinted", "episodes_so_far", "episodes, all of them"),
)


def write_report(directory: Path, arms: Sequence[str]) -> Path:
    """Write the report on the runs with these names below a directory, and on `demo.json` where there is one."""
    runs = [RunFiles(directory / arm) for arm in arms]
    summary = directory / DEMO_SUMMARY_FILE
    page = _template().render(
        summary=json.loads(summary.read_text()) if summary.exists() else {},
        arms=[_row(run) for run in runs],
        comparison=compare_runs(runs),
        charts=[Markup(chart) for chart in _charts(runs)],  # line_chart escapes its text
        rollout=next((view for run in runs if (view := most_changed_rollout(run))), None),
        alarms=[(arm_label(run), alarm) for run in runs for alarm in run.alarms],
    )
    path = directory / "report.html"
    write_atomically(path, page.encode())
    return path


def compare_runs(runs: Sequence[RunFiles]) -> ArmComparison | None:
    """Compare the last run with the first; None where fewer than two have a score."""
    scored = [run for run in runs if run.scores]
    if len(scored) < 2:
        return None
    first, last = scored[0], scored[-1]
    return compare_scores(first.scores[-1], last.scores[-1], arm_label(first), arm_label(last))


def arm_label(run: RunFiles) -> str:
    return ARM_LABELS.get(run.arm, run.arm)


def _row(run: RunFiles) -> dict[str, Any]:
    scores = run.scores
    first, last = (scores[0], scores[-1]) if scores else ({}, {})
    return {"name": arm_label(run), "first": first, "last": last, "targets": len(run.targets)}


def _charts(runs: Sequence[RunFiles]) -> list[str]:
    charts = []
    for title, value, against, label in _CHARTS:
        series = [line for run in runs if (line := _series(run, value, against)).xs]
        if series:
            charts.append(line_chart(title, series, label, "share", size=(520, 300)))
    return charts


def _series(run: RunFiles, value: str, against: str) -> ChartSeries:
    scale = 1e-6 if against == "flops" else 1
    points = [
        (score[against] * scale, score[value])
        for score in run.scores
        if score.get(value) is not None and score.get(against) is not None
    ]
    return ChartSeries(arm_label(run), [x for x, _ in points], [y for _, y in points])


def _template() -> Any:
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=_printable,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["share"] = _share
    return templates.get_template("report.html.jinja")


def _printable(value: Any) -> Any:
    """Replace characters that control a terminal or the direction of writing. Escaping comes after this."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "".join(char if char.isprintable() or char in "\n\u00a0" else "?" for char in value)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
