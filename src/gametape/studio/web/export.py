"""`gametape studio export`: a run in one file, made of the same templates, scripts and answers as the served page.

What the scripts would ask a server is put into the file, as data that no browser runs. The content security policy
allows exactly the one script and the one style sheet of the file, by their digests, and no request.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from markupsafe import Markup

from gametape.core.errors import BadInput
from gametape.record.atomic import write_atomically
from gametape.record.errors import printable_path
from gametape.studio.run_place import find_place
from gametape.studio.sections.evaluation import evaluation_section
from gametape.studio.target_file import refuse_target
from gametape.studio.web.catalogue import FoundRun, RolloutFile, RunCatalogue, rollout_files
from gametape.studio.web.data import series_answer, steps_answer, tape_answer
from gametape.studio.web.pages import run_data
from gametape.studio.web.script_bundle import bundle_scripts
from gametape.studio.web.site import STATIC, StudioSite
from gametape.studio.web.tape import SLICE

GENERATOR = "gametape studio export"
MOST_BYTES = 24 << 20
"""Of data in one file."""
_MOST_ROLLOUTS = 300
_KINDS = ("training", "eval", "attempt", "goal", "thread", "trajectory")


@dataclass(frozen=True)
class WrittenExport:
    path: Path
    size: int
    rollouts: int
    left_out: int
    """Rollouts that the file has no room for, or that cannot be read."""


def write_export(path: Path, out: Path) -> WrittenExport:
    """Write the file on a run. Only an earlier export is written over."""
    refuse_target(out, GENERATOR, "export")
    place = find_place(path, path)
    if place.kind not in _KINDS:
        raise BadInput(f"{printable_path(path)}: a {place.kind}, not a run; name one of the runs in it")
    root = path.absolute()
    site = StudioSite(RunCatalogue(root.parent, root.parent))
    run = FoundRun(root.name, place)
    files = sorted(rollout_files(place), key=lambda file: -file.changed)
    answers: dict[str, str] = {}
    if place.kind == "training":
        answers[_key("series", run.name)] = json.dumps(series_answer(site, run))
    taken, room = [], MOST_BYTES
    for file in files[:_MOST_ROLLOUTS]:
        more = _tape_answers(site, run, file, room)
        if more:
            room -= sum(map(len, more.values()))
            answers |= more
            taken.append(file)
    if path.is_file() and not taken:
        raise BadInput(f"{printable_path(path)}: not a trajectory that can be read, or one with no room in a file")
    page = _render(site, run, taken, answers, len(files) - len(taken))
    write_atomically(out, page.encode())
    return WrittenExport(out.absolute(), len(page.encode()), len(taken), len(files) - len(taken))


def _tape_answers(site: StudioSite, run: FoundRun, file: RolloutFile, room: int) -> dict[str, str]:
    """All answers about one rollout as JSON; nothing where it cannot be read or there is no room."""
    if file.size > 4 * room:
        return {}
    try:
        summary = tape_answer(site, run, file)
        answers = {_key("tape", run.name, file.name): json.dumps(summary)}
        for first in range(0, max(1, summary["steps"]), SLICE):
            text = json.dumps(steps_answer(site, run, file, first))
            answers[_key("steps", run.name, file.name, str(first))] = text
            room -= len(text)
            if room < 0:
                return {}
    except (BadInput, RecursionError):
        return {}
    return answers


def _render(site: StudioSite, run: FoundRun, taken: list[RolloutFile], answers: dict[str, str], left_out: int) -> str:
    script, style = bundle_scripts(STATIC), (STATIC / "studio.css").read_text("utf-8")
    facts, _ = site.rollouts.read(sorted(taken, key=lambda file: file.name))
    training = run.place.kind == "training"
    shown = run_data(site, [run]) if training else {}
    section = evaluation_section(run.place) if run.place.kind == "eval" else None
    return site.templates.get_template("export.html.jinja").render(
        title=run.name,
        generator=GENERATOR,
        policy=f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:",
        script=Markup(script),
        style=Markup(style),
        data=Markup(_data_text(answers)),
        run=run.name,
        training=training,
        facts=facts,
        left_out=left_out,
        evaluation=section.data if section else None,
        address=_address,
        **shown,
    )


def _address(rollout: str, step: int) -> str:
    return f"#{urlencode({'rollout': rollout} | ({'step': step} if step else {}))}"


def _key(*parts: str) -> str:
    return "|".join([*parts, *[""] * (4 - len(parts))])


def _data_text(answers: dict[str, str]) -> str:
    """One JSON object that cannot end the element that it stands in."""
    parts = [f"{json.dumps(key)}: {text}" for key, text in answers.items()]
    return ("{" + ",\n".join(parts) + "}").replace("<", "\\u003c").replace("\u2028", "\\u2028")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
