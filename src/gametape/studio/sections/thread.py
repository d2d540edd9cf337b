"""A thread as a section: its settings and the conversation."""

from gametape.studio.page import PageBudget, ReportSection
from gametape.studio.run_place import RunPlace
from gametape.studio.sections.json_file import read_json
from gametape.studio.sections.tape import tape_data
from gametape.studio.step_view import text_of
from gametape.studio.trajectory_view import read_trajectory


def thread_section(place: RunPlace, budget: PageBudget) -> ReportSection:
    thread = read_json(place.path / "thread.json")
    paused = text_of(thread.get("paused"))
    state = "archived" if thread.get("archived") is True else f"paused: {paused}" if paused else "open"
    data = {
        "id": place.path.name,
        "model": text_of(thread.get("model")),
        "state": state,
        "forked_from": text_of(thread.get("forked_from")),
        "record": tape_data(read_trajectory(place.trajectory), budget) if place.trajectory else None,
    }
    return ReportSection(text_of(thread.get("title")) or place.path.name, "thread.html.jinja", data)
