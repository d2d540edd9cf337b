"""Training runs as a section: curves, before and after, what differs between them, and the tape of one rollout."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from gametape.studio.comparison import ArmComparison, compare_scores
from gametape.studio.line_chart import ChartSeries, line_chart
from gametape.studio.page import ReportSection, printable_text
from gametape.studio.rollout_view import most_changed_rollout
from gametape.studio.run_files import RunFiles

ARM_LABELS = {"rlvr": "RLVR", "rlvr_ttf": "RLVR+TTF", "rlvr_ttf_gated": "RLVR+TTF, gated", "sft": "SFT"}
_CHARTS = (
    ("Held-out success", "success", "episodes_so_far", "episodes, all of them"),
    ("Held-out success for what it took", "success", "flops", "operations, in millions"),
    ("Load-bearing turns that go right", "load_bearing", "episodes_so_far", "episodes, all of them"),
    ("Load-bearing turns that go right after a hint", "hinted", "episodes_so_far", "episodes, all of them"),
)
_UPDATE_CHARTS = (("Mean reward of an update", "reward"), ("Entropy", "entropy"))
_MOST_POINTS = 400
_MOST_SETTINGS = 40
_MOST_ALARMS = 30


def training_section(runs: Sequence[RunFiles]) -> ReportSection:
    """One section over all runs, in the order they were given: the last is compared with the first."""
    labels = run_labels(runs)
    rollout = next((view for run in runs if (view := most_changed_rollout(run))), None)
    alarms = [(label, alarm) for run, label in zip(runs, labels, strict=True) for alarm in run.alarms]
    data = {
        "arms": [_row(run, label) for run, label in zip(runs, labels, strict=True)],
        "comparison": compare_runs(runs, labels),
        "charts": [Markup(chart) for chart in _charts(runs, labels)],  # line_chart escapes its text
        "settings": _different_settings(runs)[:_MOST_SETTINGS],
        "labels": labels,
        "rollout": rollout,
        "alarms": alarms[:_MOST_ALARMS],
        "more_alarms": max(0, len(alarms) - _MOST_ALARMS),
    }
    title = f"Training: {', '.join(labels[:4])}{f' and {len(labels) - 4} more' if len(labels) > 4 else ''}"
    return ReportSection(title, "training.html.jinja", data)


def compare_runs(runs: Sequence[RunFiles], labels: Sequence[str]) -> ArmComparison | None:
    """Compare the last run with the first; None where fewer than two have a score."""
    scored = [(run, label) for run, label in zip(runs, labels, strict=True) if run.scores]
    if len(scored) < 2:
        return None
    (first, first_label), (last, last_label) = scored[0], scored[-1]
    return compare_scores(first.scores[-1], last.scores[-1], first_label, last_label)


def run_labels(runs: Sequence[RunFiles]) -> list[str]:
    """The arm of each run, with the name of its directory where two have the same arm."""
    arms = [ARM_LABELS.get(run.arm, run.arm) for run in runs]
    several = Counter(arms)
    return [
        printable_text(f"{arm} ({run.root.absolute().name})" if several[arm] > 1 else arm)
        for run, arm in zip(runs, arms, strict=True)
    ]


def _row(run: RunFiles, label: str) -> dict[str, Any]:
    scores = run.scores
    first, last = (scores[0], scores[-1]) if scores else ({}, {})
    return {"name": label, "first": first, "last": last, "targets": len(run.targets)}


def _charts(runs: Sequence[RunFiles], labels: Sequence[str]) -> list[str]:
    charts = []
    for title, value, against, label in _CHARTS:
        series = [_series(run, name, value, against) for run, name in zip(runs, labels, strict=True)]
        if any(line.xs for line in series):
            charts.append(line_chart(title, series, label, "share", size=(520, 300)))
    for title, value in _UPDATE_CHARTS:
        series = [_update_series(run, name, value) for run, name in zip(runs, labels, strict=True)]
        if any(len(line.xs) > 1 for line in series):
            charts.append(line_chart(title, series, "update", value, size=(520, 300), y_range=None))
    return charts


def _series(run: RunFiles, label: str, value: str, against: str) -> ChartSeries:
    scale = 1e-6 if against == "flops" else 1
    points = [
        (score[against] * scale, score[value]) for score in run.scores if _number(score, value, against) is not None
    ]
    return ChartSeries(label, [x for x, _ in points], [y for _, y in points])


def _update_series(run: RunFiles, label: str, value: str) -> ChartSeries:
    points = [
        (line["step"], line[value])
        for line in run.metrics
        if line.get("kind") not in ("eval", "alarm") and _number(line, value, "step") is not None
    ]
    points = points[:: max(1, len(points) // _MOST_POINTS)]
    return ChartSeries(label, [x for x, _ in points], [y for _, y in points])


def _number(line: dict[str, Any], *names: str) -> float | None:
    values = [line.get(name) for name in names]
    return values[0] if all(isinstance(value, int | float) for value in values) else None


def _different_settings(runs: Sequence[RunFiles]) -> list[tuple[str, list[str]]]:
    """The settings that are not the same in all runs, by their dotted names."""
    flat = [_flat(run.config) for run in runs]
    names = sorted({name for settings in flat for name in settings})
    rows = [(name, [str(settings.get(name, "-")) for settings in flat]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def _flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, value in config.items():
        settings |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return settings
