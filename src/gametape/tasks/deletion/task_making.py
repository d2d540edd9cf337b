"""From a find to a task: its manifest, its text, its reference."""

import email
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gametape.core.task import Difficulty, Origin, Stage, Task, TaskTests
from gametape.tasks.deletion.carving.carving import Tier
from gametape.tasks.deletion.chain import Chain
from gametape.tasks.deletion.difficulty import Shown, prior
from gametape.tasks.deletion.environments.environment import Environment
from gametape.tasks.deletion.features import Candidate
from gametape.tasks.deletion.functions import Function
from gametape.tasks.deletion.instruction import Brief, write_chain, write_instruction
from gametape.tasks.deletion.project import Project
from gametape.tasks.deletion.trial import Find, Rejected
from gametape.tasks.writing import write_task
from gametape.verify.subject import Subject
from gametape.verify.tree import Tree, is_under

Kind = Literal["deletion", "bug"]


@dataclass(frozen=True)
class Made:
    """A task that is still to be written."""

    subject: Subject
    description: str
    keywords: tuple[str, ...]
    facts: Mapping[str, Any]
    """What the ledger keeps about it."""

    @property
    def name(self) -> str:
        return self.subject.task.name

    def write(self, directory: Path) -> None:
        write_task(directory, self.subject, self.description, self.keywords)


@dataclass(frozen=True)
class Maker:
    """Makes the tasks of one code base."""

    project: Project
    environment: Environment
    tier: Tier
    kind: Kind

    def make(self, find: Find) -> Made:
        asked = "Mend" if self.kind == "bug" else "Bring back"
        name = task_name(self.project, self.kind, self.tier, find.candidate)
        description = f"{asked} {find.candidate.seeds[0].qualname} of {self.project.name}"
        return self._made(find, name, _written(self._brief(find, _parts(find), find.split.visible)), description)

    def make_chain(self, chain: Chain) -> Made:
        """One task with a stage for each feature of a chain."""
        find, count = chain.find, len(chain.stages)
        stages, briefs = [], []
        for number, ((seed, turned), part) in enumerate(zip(chain.stages, find.candidate.parts, strict=True), start=1):
            tests = TaskTests(
                fail_to_pass=[test for test in find.split.visible if test in turned],
                pass_to_pass=[],
                held_out=[test for test in find.split.held_out if test in turned],
            )
            brief = replace(self._brief(find, [sorted(part)], tests.fail_to_pass), stage=(number, count))
            briefs.append(brief)
            name = f"{number:02}-{_slug(seed.qualname)}"
            stages.append(Stage(name=name, instruction=_written(brief), tests=tests))
        name = f"{_slug(self.project.name)}-chain-of-{count}-{find.candidate.key[:8]}"
        description = f"Bring back {count} features of {self.project.name}, one after the other"
        return self._made(find, name, write_chain(briefs), description, stages)

    def _made(self, find: Find, name: str, instruction: str, description: str, stages: Sequence[Stage] = ()) -> Made:
        project, parted = self.project, find.split
        sources = {path: project.tree.text(path) for path in sorted({one.path for one in find.deleted})}
        failing = [*parted.visible, *parted.held_out]
        shown: Shown = "docstrings" if self.tier == "stub" or self.kind == "bug" else "tests"
        hard, components = prior(sources, find.deleted, len(failing), shown)
        task = Task(
            name=name,
            mode="shared",
            instruction=instruction,
            source_paths=[*project.source_paths],
            test_paths=[*project.test_paths],
            import_roots=[*project.import_roots],
            dependencies=[*self.environment.dependencies],
            origin=Origin(name=project.name, version=project.version) if project.name and project.version else None,
            tests=TaskTests(
                fail_to_pass=[*parted.visible],
                pass_to_pass=[*find.passing],
                held_out=[*parted.held_out, *find.passing_unseen],
                held_out_passing=[*find.passing_unseen],
            ),
            difficulty=Difficulty(prior=round(hard, 4), components=components),
            stages=[*stages],
        )
        suite = project.tree.under([*project.test_paths])
        reference = restored(project, find.start)
        subject = Subject(task, find.start, suite, reference, self.environment.interpreter)
        form = ["chain"] if stages else ["union"] if len(find.candidate.seeds) > 1 else []
        return Made(subject, description, ("mined", self.kind, self.tier, *form), self._facts(find, components))

    def _brief(self, find: Find, parts: Sequence[Sequence[Function]], failing: Sequence[str]) -> Brief:
        texts = {one: self.project.tree.text(one.path) for one in find.deleted}
        return Brief(
            project=self.project.name,
            description=described(self.project),
            kind="bug" if self.kind == "bug" else self.tier,
            features=[{one: texts[one] for one in part} for part in parts],
            failing={test: find.messages.get(test, "") for test in failing},
            source_paths=self.project.source_paths,
            import_roots=self.project.import_roots,
        )

    def _facts(self, find: Find, components: Mapping[str, float]) -> dict[str, Any]:
        failing = {*find.split.visible, *find.split.held_out}
        return {
            "deleted": sorted(map(str, find.deleted)),
            "tests": {
                "fail_to_pass": len(find.split.visible),
                "held_out": len(find.split.held_out),
                "pass_to_pass": len(find.passing),
                "held_out_passing": len(find.passing_unseen),
                "not_predicted": len(failing - find.predicted),
                "passed_unexpectedly": len(find.predicted.intersection([*find.passing, *find.passing_unseen])),
            },
            "difficulty": dict(components),
        }


def _written(brief: Brief) -> str:
    try:
        return write_instruction(brief)
    except ValueError as error:
        raise Rejected("instruction", str(error)) from error


def _parts(find: Find) -> list[list[Function]]:
    """The deleted functions by the seed they came with; what came with several stays with the first."""
    left = sorted(find.deleted, key=lambda one: (one not in find.candidate.seeds, one))
    if len(find.candidate.seeds) == 1:
        return [left]
    parts = []
    for part in find.candidate.parts:
        parts.append([one for one in left if one in part])
        left = [one for one in left if one not in part]
    parts[0] += left
    return parts


def restored(project: Project, start: Tree) -> Tree:
    """The starting tree with the author's sources in their places, byte for byte. Tests stay as the agent sees them."""
    sources = {
        path
        for path in project.tree
        if is_under(path, [*project.source_paths]) and not is_under(path, [*project.test_paths])
    }
    return project.tree.only(sources).over(start)


def task_name(project: Project, kind: Kind, tier: Tier, candidate: Candidate) -> str:
    """Readable, and different for different tasks of a code base."""
    what = _slug(candidate.seeds[0].qualname)
    form = "bug" if kind == "bug" else "" if tier == "stub" else "removal"
    many = f"{len(candidate.seeds)}-features" if len(candidate.seeds) > 1 else ""
    return "-".join(filter(None, (_slug(project.name), what, many, form, candidate.key[:8])))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].rstrip("-")


def described(project: Project) -> str:
    """What the project says about itself: the summary in its metadata, else its read-me."""
    summary = email.message_from_string(project.metadata).get("Summary", "").strip()
    if summary and summary != "UNKNOWN":
        return summary
    readme = next((path for path in sorted(project.tree) if path.lower().startswith("readme")), None)
    return project.tree.text(readme) if readme else ""
