"""How the tests of mined tasks run: the suite of a project is recorded once, and each task gets the strongest mode that
its own tests allow."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gametape.core.task import Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.tasks.dependency_env.build import DependencyEnv
from gametape.tasks.project import Project
from gametape.verify.replay.recording import Recording, record_tests
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.result_counts import feature_tests
from gametape.verify.runner import ZygotePool
from gametape.verify.stage_progress import StageProgress, ignore_progress
from gametape.verify.test_ways import choose_ways

_NAMED = 3


@dataclass(frozen=True)
class TaskModeChooser:
    """Chooses the mode of tasks of one project."""

    recording: Recording

    @classmethod
    def for_project(
        cls,
        project: Project,
        env: DependencyEnv,
        tests: Sequence[str],
        home: Path,
        on_progress: StageProgress = ignore_progress,
    ) -> "TaskModeChooser":
        """Record these tests against the author's code. The recording is kept under `home`, where verdicts on the
        tasks find it."""
        task = Task(
            name=project.name or "project",
            mode="replay",
            instruction="",
            source_paths=[*project.source_paths],
            test_paths=[*project.test_paths],
            import_roots=[*project.import_roots],
            dependencies=[*env.dependencies],
            tests=TaskTests(fail_to_pass=[], pass_to_pass=[*tests]),
        )
        suite = project.tree.under([*project.test_paths])
        loaded_task = LoadedTask(task, project.tree, suite, project.tree, env.interpreter)
        with ZygotePool() as zygotes, ReplaySandboxes() as sandboxes:
            return cls(record_tests(loaded_task, zygotes, sandboxes, home, on_progress))

    def choose(self, loaded_task: LoadedTask) -> tuple[LoadedTask, dict[str, Any]]:
        """The task with its mode, and what the mining log says about it."""
        task = loaded_task.task.model_copy(update={"mode": "replay", "split": None})
        ways = choose_ways(task, self.recording)
        mode, feature = ways.mode(task.tests), feature_tests(task.tests)
        facts: dict[str, Any] = {"mode": mode, "ways": ways.count(feature)}
        if unrecorded := [test for test in feature if ways.by_test[test] != "replay"]:
            facts["not_replayable"] = dict(Counter(ways.reasons[test] for test in unrecorded).most_common())
            facts["why_not"] = [
                f"{test}: {self.recording.reasons[test].detail}"
                for test in unrecorded
                if test in self.recording.reasons
            ][:_NAMED]
        declared = task if mode != "shared" else task.model_copy(update={"mode": "shared"})
        return replace(loaded_task, task=declared), facts
