"""From a find to a task: its manifest, its text, its reference."""

import email
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gametape.core.task import Difficulty, Origin, Stage, Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, is_under
from gametape.tasks.dependency_env.build import DependencyEnv
from gametape.tasks.mining.candidates import Candidate
from gametape.tasks.mining.chain import FeatureChain
from gametape.tasks.mining.difficulty import VisibleContext, difficulty_prior
from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.instruction import InstructionBrief, write_chain_instruction, write_instruction
from gametape.tasks.mining.removal.deletion import Tier
from gametape.tasks.mining.trial import CandidateRejected, ValidCandidate
from gametape.tasks.project import Project
from gametape.tasks.writer import write_task

TaskKind = Literal["deletion", "bug"]


@dataclass(frozen=True)
class TaskDraft:
    """A task that is still to be written."""

    loaded_task: LoadedTask
    description: str
    keywords: tuple[str, ...]
    log_facts: Mapping[str, Any]
    """What the ledger keeps about it."""

    @property
    def name(self) -> str:
        return self.loaded_task.task.name

    def write(self, directory: Path) -> None:
        write_task(directory, self.loaded_task, self.description, self.keywords)


@dataclass(frozen=True)
class TaskBuilder:
    """Makes the tasks of one code base."""

    project: Project
    dependency_env: DependencyEnv
    tier: Tier
    kind: TaskKind

    def build(self, valid: ValidCandidate) -> TaskDraft:
        asked = "Mend" if self.kind == "bug" else "Bring back"
        name = task_name(self.project, self.kind, self.tier, valid.candidate)
        description = f"{asked} {valid.candidate.seeds[0].qualname} of {self.project.name}"
        return self._draft(valid, name, _written(self._brief(valid, _parts(valid), valid.split.visible)), description)

    def build_chain(self, chain: FeatureChain) -> TaskDraft:
        """One task with a stage for each feature of a chain."""
        find, count = chain.valid_candidate, len(chain.stages)
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
        return self._draft(find, name, write_chain_instruction(briefs), description, stages)

    def _draft(
        self, find: ValidCandidate, name: str, instruction: str, description: str, stages: Sequence[Stage] = ()
    ) -> TaskDraft:
        project, parted = self.project, find.split
        sources = {path: project.tree.text(path) for path in sorted({one.path for one in find.deleted})}
        failing = [*parted.visible, *parted.held_out]
        shown: VisibleContext = "docstrings" if self.tier == "stub" or self.kind == "bug" else "tests"
        hard, components = difficulty_prior(sources, find.deleted, len(failing), shown)
        task = Task(
            name=name,
            mode="shared",
            instruction=instruction,
            source_paths=[*project.source_paths],
            test_paths=[*project.test_paths],
            import_roots=[*project.import_roots],
            dependencies=[*self.dependency_env.dependencies],
            origin=Origin(name=project.name, version=project.version) if project.name and project.version else None,
            tests=TaskTests(
                fail_to_pass=[*parted.visible],
                pass_to_pass=[*find.pass_to_pass],
                held_out=[*parted.held_out, *find.held_out_passing],
                held_out_passing=[*find.held_out_passing],
            ),
            difficulty=Difficulty(prior=round(hard, 4), components=components),
            stages=[*stages],
        )
        suite = project.tree.under([*project.test_paths])
        reference = restore_sources(project, find.start)
        subject = LoadedTask(task, find.start, suite, reference, self.dependency_env.interpreter)
        form = ["chain"] if stages else ["union"] if len(find.candidate.seeds) > 1 else []
        return TaskDraft(subject, description, ("mined", self.kind, self.tier, *form), self._facts(find, components))

    def _brief(
        self, find: ValidCandidate, parts: Sequence[Sequence[Function]], failing: Sequence[str]
    ) -> InstructionBrief:
        texts = {one: self.project.tree.text(one.path) for one in find.deleted}
        return InstructionBrief(
            project=self.project.name,
            description=project_description(self.project),
            kind="bug" if self.kind == "bug" else self.tier,
            features=[{one: texts[one] for one in part} for part in parts],
            failing={test: find.failure_messages.get(test, "") for test in failing},
            source_paths=self.project.source_paths,
            import_roots=self.project.import_roots,
        )

    def _facts(self, find: ValidCandidate, components: Mapping[str, float]) -> dict[str, Any]:
        failing = {*find.split.visible, *find.split.held_out}
        return {
            "deleted": sorted(map(str, find.deleted)),
            "tests": {
                "fail_to_pass": len(find.split.visible),
                "held_out": len(find.split.held_out),
                "pass_to_pass": len(find.pass_to_pass),
                "held_out_passing": len(find.held_out_passing),
                "not_predicted": len(failing - find.predicted_failing),
                "passed_unexpectedly": len(
                    find.predicted_failing.intersection([*find.pass_to_pass, *find.held_out_passing])
                ),
            },
            "difficulty": dict(components),
        }


def _written(brief: InstructionBrief) -> str:
    try:
        return write_instruction(brief)
    except ValueError as error:
        raise CandidateRejected("instruction", str(error)) from error


def _parts(find: ValidCandidate) -> list[list[Function]]:
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


def restore_sources(project: Project, start: SourceTree) -> SourceTree:
    """The starting tree with the author's sources in their places, byte for byte. Tests stay as the agent sees them."""
    sources = {
        path
        for path in project.tree
        if is_under(path, [*project.source_paths]) and not is_under(path, [*project.test_paths])
    }
    return project.tree.only(sources).overlaid_on(start)


def task_name(project: Project, kind: TaskKind, tier: Tier, candidate: Candidate) -> str:
    """Readable, and different for different tasks of a code base."""
    what = _slug(candidate.seeds[0].qualname)
    form = "bug" if kind == "bug" else "" if tier == "stub" else "removal"
    many = f"{len(candidate.seeds)}-features" if len(candidate.seeds) > 1 else ""
    return "-".join(filter(None, (_slug(project.name), what, many, form, candidate.key[:8])))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].rstrip("-")


def project_description(project: Project) -> str:
    """What the project says about itself: the summary in its metadata, else its read-me."""
    summary = email.message_from_string(project.metadata).get("Summary", "").strip()
    if summary and summary != "UNKNOWN":
        return summary
    readme = next((path for path in sorted(project.tree) if path.lower().startswith("readme")), None)
    return project.tree.text(readme) if readme else ""
