"""A trajectory as a section: an attempt of `solve`, a rollout of a run, or the file of another maker."""

from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path
from gametape.record.regular_file import read_beginning
from gametape.studio.page import PageBudget, ReportSection, StepSelection
from gametape.studio.run_place import RunPlace
from gametape.studio.step_view import StepView
from gametape.studio.trajectory_view import TrajectoryView, read_trajectory

MOST_STEPS = 400
"""The most steps of one trajectory."""
_MOST_SUBAGENTS = 20
_MOST_TEXT_BYTES = 16 << 20


def tape_data(view: TrajectoryView, budget: PageBudget) -> dict[str, Any]:
    """What the template `tape` draws."""
    subagents = [{"view": sub, "tape": budget.take(sub.steps, MOST_STEPS)} for sub in view.subagents[:_MOST_SUBAGENTS]]
    steps: StepSelection[StepView] = budget.take(view.steps, MOST_STEPS)
    return {"view": view, "tape": steps, "subagents": subagents}


def attempt_section(place: RunPlace, budget: PageBudget) -> ReportSection:
    if place.trajectory is None:
        raise BadInput(f"{printable_path(place.path)}: has no trajectory")
    view = read_trajectory(place.trajectory)
    patch = read_text(place.path / "patch.diff") if place.kind == "attempt" else ""
    return ReportSection(view.title, "attempt.html.jinja", tape_data(view, budget) | {"patch": patch})


def read_text(path: Path) -> str:
    """A text file of a run, up to a bound; empty where there is none."""
    try:
        return read_beginning(path, _MOST_TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
