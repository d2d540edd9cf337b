"""A goal as a section: what was asked, what each attempt came to, the patch, and the turns."""

from gametape.studio.page import PageBudget, ReportSection
from gametape.studio.run_place import RunPlace
from gametape.studio.sections.json_file import read_json
from gametape.studio.sections.tape import read_text, tape_data
from gametape.studio.step_view import mappings, text_of
from gametape.studio.trajectory_view import read_trajectory


def goal_section(place: RunPlace, budget: PageBudget) -> ReportSection:
    goal, result = read_json(place.path / "goal.json"), read_json(place.path / "result.json")
    instruction = text_of(goal.get("instruction"))
    state = "open" if not result else "reached" if result.get("reached") is True else "not reached"
    data = {
        "id": place.path.name,
        "goal": goal,
        "instruction": instruction,
        "state": state,
        "reason": text_of(result.get("reason")),
        "branch": text_of(result.get("branch")),
        "attempts": mappings(result.get("attempts")),
        "patch": read_text(place.path / "patch.diff"),
        "record": tape_data(read_trajectory(place.trajectory), budget) if place.trajectory else None,
    }
    return ReportSection(instruction.strip().partition("\n")[0] or place.path.name, "goal.html.jinja", data)
