"""From a find to a task: its manifest, its text, its reference."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gametape.core.task import Difficulty, Origin, Task, TaskTests
from gametape.tasks.deletion.carving.carving import Tier
from gametape.tasks.deletion.difficulty import Shown, prior
from gametape.tasks.deletion.environments.environment import Environment
from gametape.tasks.deletion.features import Candidate
from gametape.tasks.deletion.functions import Function
from gametape.tasks.deletion.instruction import Brief, write_instruction
from gametape.tasks.deletion.project import Project
from gametape.tasks.deletion.trial import Find
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
        project, parted = self.project, find.split
        sources = {path: project.tree.text(path) for path in sorted({one.path for one in find.deleted})}
        failing = [*parted.visible, *parted.held_out]
        shown: Shown = "docstrings" if self.tier == "stub" or self.kind == "bug" else "tests"
        hard, components = prior(sources, find.deleted, len(failing), shown)
        task = Task(
            name=task_name(project, self.kind, self.tier, find.candidate),
            mode="shared",
            instruction=write_instruction(self._brief(find)),
            source_paths=[*project.source_paths],
            test_paths=[*project.test_paths],
            import_roots=[*project.import_roots],
            dependencies=[*self.environment.dependencies],
            origin=Origin(name=project.name, version=project.version) if project.name and project.version else None,
            tests=TaskTests(fail_to_pass=[*parted.visible], pass_to_pass=[*find.passing], held_out=[*parted.held_out]),
            difficulty=Difficulty(prior=round(hard, 4), components=components),
        )
        subject = Subject(
            task,
            find.start,
            project.tree.under([*project.test_paths]),
            restored(project, find.start),
            self.environment.interpreter,
        )
        asked = "Mend" if self.kind == "bug" else "Bring back"
        description = f"{asked} {find.candidate.seeds[0].qualname} of {project.name}"
        keywords = ("mined", self.kind, self.tier, *(["union"] if len(find.candidate.seeds) > 1 else []))
        return Made(subject, description, keywords, self._facts(find, components))

    def _brief(self, find: Find) -> Brief:
        texts = {one: self.project.tree.text(one.path) for one in find.deleted}
        return Brief(
            project=self.project.name,
            description=described(self.project),
            kind="bug" if self.kind == "bug" else self.tier,
            features=[{one: texts[one] for one in part} for part in _parts(find)],
            failing={test: find.messages.get(test, "") for test in find.split.visible},
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


def _parts(find: Find) -> list[list[Function]]:
    """The deleted functions by the seed they came with; what came with several stays with the first."""
    left = sorted(find.deleted)
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
    what = re.sub(r"[^a-z0-9]+", "-", candidate.seeds[0].qualname.lower()).strip("-")[:40].rstrip("-")
    form = "bug" if kind == "bug" else "" if tier == "stub" else "removal"
    many = f"{len(candidate.seeds)}-features" if len(candidate.seeds) > 1 else ""
    project_name = re.sub(r"[^a-z0-9]+", "-", project.name.lower()).strip("-")
    return "-".join(filter(None, (project_name, what, many, form, candidate.key[:8])))


def described(project: Project) -> str:
    """What the project says about itself: the body of its metadata, else its read-me."""
    body = project.metadata.partition("\n\n")[2].strip()
    if body:
        return body
    readme = next((path for path in sorted(project.tree) if path.lower().startswith("readme")), None)
    return project.tree.text(readme) if readme else ""
