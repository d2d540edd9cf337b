"""`gametape report`: any runs in one HTML file that opens from disk and needs no network."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.atomic import write_atomically
from gametape.record.errors import printable_path
from gametape.studio.page import GENERATOR, PageBudget, ReportSection, render_page
from gametape.studio.run_files import RunFiles
from gametape.studio.run_place import RunPlace
from gametape.studio.sections.collection import collection_section, directory_places, home_places
from gametape.studio.sections.demo import demo_sections
from gametape.studio.sections.evaluation import evaluation_section
from gametape.studio.sections.goal import goal_section
from gametape.studio.sections.tape import attempt_section
from gametape.studio.sections.thread import thread_section
from gametape.studio.sections.training import training_section
from gametape.studio.target_file import refuse_target

_MOST_IN_A_COLLECTION = 12
"""Runs of a directory that get a section of their own; the table lists them all."""
_MOST_ROLLOUTS = 3


@dataclass(frozen=True)
class WrittenReport:
    path: Path
    sections: int
    left_out: int
    """Steps that the page had no room for."""


def write_report(places: Sequence[RunPlace], out: Path) -> WrittenReport:
    """Write the report on these runs. Only an earlier report is written over."""
    refuse_target(out, GENERATOR, "report")
    budget = PageBudget()
    sections = [*_sections(places, budget)]
    if not sections:
        raise BadInput(f"{printable_path(places[0].path)}: there is nothing to report on")
    title = sections[0].title if len(sections) == 1 or places[0].kind != "training" else "gametape report"
    page = render_page(title, sections, budget)
    write_atomically(out, page.encode())
    return WrittenReport(out.absolute(), len(sections), budget.left_out)


def _sections(places: Sequence[RunPlace], budget: PageBudget) -> Iterator[ReportSection]:
    """Training runs share a section, so that they are compared; every other run has its own."""
    training = [RunFiles(place.path) for place in places if place.kind == "training"]
    if training:
        yield training_section(training)
    for place in places:
        yield from _sections_of(place, budget)


def _sections_of(place: RunPlace, budget: PageBudget) -> Iterator[ReportSection]:
    match place.kind:
        case "goal":
            yield goal_section(place, budget)
        case "thread":
            yield thread_section(place, budget)
        case "attempt" | "trajectory":
            yield attempt_section(place, budget)
        case "eval":
            yield evaluation_section(place)
            yield from _kept_trajectories(place, budget)
        case "demo":
            yield from demo_sections(place.path)
        case "training":
            yield from _kept_trajectories(place, budget)
        case "home" | "directory":
            inside = home_places(place) if place.kind == "home" else directory_places(place)
            if not inside:
                raise BadInput(f"{printable_path(place.path)}: a {place.kind} without a run or a trajectory")
            yield collection_section(place, inside, _MOST_IN_A_COLLECTION)
            yield from _readable_sections(inside[:_MOST_IN_A_COLLECTION], budget)


def _readable_sections(places: Sequence[RunPlace], budget: PageBudget) -> Iterator[ReportSection]:
    """The sections of what was found in a directory. What is damaged there is said, and the rest is shown."""
    if training := [place for place in places if place.kind == "training"]:
        yield from _sections(training, budget)
    for place in places:
        if place.kind != "training":
            try:
                yield from [*_sections_of(place, budget)]
            except BadInput as error:
                yield ReportSection(place.path.name, "damaged.html.jinja", {"reason": str(error)})


def _kept_trajectories(place: RunPlace, budget: PageBudget) -> Iterator[ReportSection]:
    """The rollouts that a run has kept: all in a table, the first of them whole."""
    root = RunPlace("directory", place.path / "trajectories")
    kept = [RunPlace("trajectory", path) for path in root.trajectories()]
    if kept:
        yield collection_section(root, kept, _MOST_ROLLOUTS)
        yield from _readable_sections(kept[:_MOST_ROLLOUTS], budget)
