"""A directory with several runs as a section: a table of all of them, the newest first where they have a time."""

from collections.abc import Sequence
from typing import Any

from gametape.core.errors import BadInput
from gametape.studio.page import ReportSection
from gametape.studio.run_place import RunPlace, child_places
from gametape.studio.sections.json_file import read_json
from gametape.studio.step_view import text_of
from gametape.studio.trajectory_view import TrajectoryView, read_trajectory

_MOST_ROWS = 300


def home_places(place: RunPlace) -> list[RunPlace]:
    """The goals and threads of a home, the newest first: their names begin with the day."""
    roots = [root for name in ("goals", "threads") if (root := place.path / name).is_dir()]
    found = [child for root in roots for child in child_places(root, ("goal", "thread"))]
    return sorted(found, key=lambda child: child.path.stat().st_mtime, reverse=True)


def directory_places(place: RunPlace) -> list[RunPlace]:
    """The runs directly below a directory; where there are none, every trajectory below it."""
    runs = child_places(place.path, ("goal", "thread", "training", "eval", "demo", "attempt"))
    return runs or [RunPlace("trajectory", path) for path in place.trajectories()]


def collection_section(place: RunPlace, places: Sequence[RunPlace], shown: int) -> ReportSection:
    """A table of places, of which the first `shown` have sections of their own."""
    data = {
        "kind": place.kind,
        "rows": [_row(child) for child in places[:_MOST_ROWS]],
        "more": max(0, len(places) - _MOST_ROWS),
        "shown": min(shown, len(places)),
        "total": len(places),
    }
    return ReportSection(place.path.absolute().name or "runs", "collection.html.jinja", data)


def _row(place: RunPlace) -> dict[str, Any]:
    row: dict[str, Any] = {"name": place.path.name, "kind": place.kind}
    try:
        view = read_trajectory(place.trajectory, lambda _turn: False) if place.trajectory else None
        return row | {"view": view} | _facts(place, view)
    except BadInput:
        return row | {"view": None, "what": "", "state": "damaged"}


def _facts(place: RunPlace, view: TrajectoryView | None) -> dict[str, str]:
    if place.kind == "goal":
        goal, result = read_json(place.path / "goal.json"), read_json(place.path / "result.json")
        state = "open" if not result else "reached" if result.get("reached") is True else "not reached"
        return {"what": text_of(goal.get("instruction")).partition("\n")[0], "state": state}
    if place.kind == "thread":
        thread = read_json(place.path / "thread.json")
        return {"what": text_of(thread.get("title")), "state": "archived" if thread.get("archived") else "open"}
    return {"what": view.task if view else "", "state": view.outcome if view else ""}
