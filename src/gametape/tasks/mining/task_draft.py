"""Turn a valid candidate into a task: its task.toml, instruction and reference."""

import email
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gametape.core.task import Difficulty, Origin, Stage, Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
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
    """A task that is not written yet."""

    loaded_task: LoadedTask
    description: str
    keywords: tuple[str, ...]
    log_facts: Mapping[str, Any]
    """What the mining log records about it."""

    @property
    def name(self) -> str:
        return self.loaded_task.task.name

    def write(self, directory: Path) -> None:
        write_task(directory, self.loaded_task, self.description, self.keywords)


@dataclass(frozen=True)
class TaskBuilder:
    """Builds the tasks of one project."""

    project: Project
    dependency_env: DependencyEnv
    tier: Tier
    kind: TaskKind

    def build(self, valid: ValidCandidate) -> TaskDraft:
        verb = "Mend" if self.kind == "bug" else "Bring back"
        name = task_name(self.project, self.kind, self.tier, valid.candidate)
        description = f"{verb} {valid.candidate.seeds[0].qualname} of {self.project.name}"
        return self._draft(valid, name, _written(self._brief(valid, _parts(valid), valid.split.visible)), description)

    def build_chain(self, chain: FeatureChain) -> TaskDraft:
        """One task with a stage for each feature of a chain."""
        valid, count = chain.valid_candidate, len(chain.stages)
        stages, briefs = [], []
        for number, ((seed, made_to_pass), part) in enumerate(
            zip(chain.stages, valid.candidate.parts, strict=True), start=1
        ):
            tests = TaskTests(
                fail_to_pass=[test for test in valid.split.visible if test in made_to_pass],
                pass_to_pass=[],
                held_out=[test for test in valid.split.held_out if test in made_to_pass],
            )
            brief = replace(self._brief(valid, [sorted(part)], tests.fail_to_pass), stage=(number, count))
            briefs.append(brief)
            name = f"{number:02}-{_slug(seed.qualname)}"
            stages.append(Stage(name=name, instruction=_written(brief), tests=tests))
        name = f"{_slug(self.project.name)}-chain-of-{count}-{valid.candidate.key[:8]}"
        description = f"Bring back {count} features of {self.project.name}, one after the other"
        return self._draft(valid, name, write_chain_instruction(briefs), description, stages)

    def _draft(
        self, valid: ValidCandidate, name: str, instruction: str, description: str, stages: Sequence[Stage] = ()
    ) -> TaskDraft:
        project, split = self.project, valid.split
        sources = {path: project.tree.text(path) for path in sorted({function.path for function in valid.deleted})}
        failing = [*split.visible, *split.held_out]
        visible_context: VisibleContext = "docstrings" if self.tier == "stub" or self.kind == "bug" else "tests"
        prior, components = difficulty_prior(sources, valid.deleted, len(failing), visible_context)
        task = Task(
            name=name,
            mode="replay",
            instruction=instruction,
            source_paths=[*project.source_paths],
            test_paths=[*project.test_paths],
            import_roots=[*project.import_roots],
            dependencies=[*self.dependency_env.dependencies],
            origin=Origin(name=project.name, version=project.version) if project.name and project.version else None,
            tests=TaskTests(
                fail_to_pass=[*split.visible],
                pass_to_pass=[*valid.pass_to_pass],
                held_out=[*split.held_out, *valid.held_out_passing],
                held_out_passing=[*valid.held_out_passing],
            ),
            difficulty=Difficulty(prior=round(prior, 4), components=components),
            stages=[*stages],
        )
        suite = project.tree.under([*project.test_paths])
        reference = restore_sources(project, valid.start)
        loaded_task = LoadedTask(task, valid.start, suite, reference, self.dependency_env.interpreter)
        form = ["chain"] if stages else ["union"] if len(valid.candidate.seeds) > 1 else []
        return TaskDraft(
            loaded_task, description, ("mined", self.kind, self.tier, *form), self._facts(valid, components)
        )

    def _brief(
        self, valid: ValidCandidate, parts: Sequence[Sequence[Function]], failing: Sequence[str]
    ) -> InstructionBrief:
        texts = {function: self.project.tree.text(function.path) for function in valid.deleted}
        return InstructionBrief(
            project=self.project.name,
            description=project_description(self.project),
            kind="bug" if self.kind == "bug" else self.tier,
            features=[{function: texts[function] for function in part} for part in parts],
            failing={test: valid.failure_messages.get(test, "") for test in failing},
            source_paths=self.project.source_paths,
            import_roots=self.project.import_roots,
        )

    def _facts(self, valid: ValidCandidate, components: Mapping[str, float]) -> dict[str, Any]:
        failing = {*valid.split.visible, *valid.split.held_out}
        return {
            "deleted": sorted(map(str, valid.deleted)),
            "tests": {
                "fail_to_pass": len(valid.split.visible),
                "held_out": len(valid.split.held_out),
                "pass_to_pass": len(valid.pass_to_pass),
                "held_out_passing": len(valid.held_out_passing),
                "not_predicted": len(failing - valid.predicted_failing),
                "passed_unexpectedly": len(
                    valid.predicted_failing.intersection([*valid.pass_to_pass, *valid.held_out_passing])
                ),
            },
            "difficulty": dict(components),
        }


def _written(brief: InstructionBrief) -> str:
    try:
        return write_instruction(brief)
    except ValueError as error:
        raise CandidateRejected("instruction", str(error)) from error


def _parts(valid: ValidCandidate) -> list[list[Function]]:
    """The deleted functions by their seed function; functions of no part, such as copies, go to the first."""
    left = sorted(valid.deleted, key=lambda function: (function not in valid.candidate.seeds, function))
    if len(valid.candidate.seeds) == 1:
        return [left]
    parts = []
    for part in valid.candidate.parts:
        parts.append([function for function in left if function in part])
        left = [function for function in left if function not in part]
    parts[0] += left
    return parts


def restore_sources(project: Project, start: SourceTree) -> SourceTree:
    """The starting tree with the author's sources restored byte for byte. Tests stay as the agent sees them."""
    return project.tree.only({path for path in project.tree if project.is_source(path)}).overlaid_on(start)


def task_name(project: Project, kind: TaskKind, tier: Tier, candidate: Candidate) -> str:
    """A readable name that is unique among the tasks of a project."""
    what = _slug(candidate.seeds[0].qualname)
    form = "bug" if kind == "bug" else "" if tier == "stub" else "removal"
    many = f"{len(candidate.seeds)}-features" if len(candidate.seeds) > 1 else ""
    return "-".join(filter(None, (_slug(project.name), what, many, form, candidate.key[:8])))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].rstrip("-")


def project_description(project: Project) -> str:
    """The summary in the project's metadata, else the text of its README."""
    summary = email.message_from_string(project.metadata).get("Summary", "").strip()
    if summary and summary != "UNKNOWN":
        return summary
    readme = next((path for path in sorted(project.tree) if path.lower().startswith("readme")), None)
    return project.tree.text(readme) if readme else ""
