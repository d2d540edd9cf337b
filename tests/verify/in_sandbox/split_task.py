"""Small packages with their tests, run in split mode in real sandboxes."""

import textwrap
from collections.abc import Mapping

from gametape.core.task import Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify import jobs
from gametape.verify.replay.surface import derive_surface
from gametape.verify.runner import ZygotePool
from gametape.verify.split_mode import SplitRun
from gametape.verify.verifier_run import VerifierRun


def run_apart(
    package: Mapping[str, str], tests: Mapping[str, str], names: list[str], data: Mapping[str, str] | None = None
) -> VerifierRun:
    """Run tests (`file::test`) with the package in one sandbox and the tests in another."""
    sources = _tree({f"src/{path}": text for path, text in package.items()})
    suite = _tree({f"tests/{path}": text for path, text in {**tests, **(data or {})}.items()})
    task = Task(
        name="apart",
        mode="shared",
        instruction="i",
        source_paths=["src"],
        import_roots=["src"],
        tests=TaskTests(fail_to_pass=[f"tests/{name}" for name in names], pass_to_pass=[]),
    )
    whole = suite.overlaid_on(sources)
    loaded_task = LoadedTask(task, whole, suite, whole)
    seconds = dict.fromkeys(jobs.group_by_file(task.tests.every), 60.0)
    processes = jobs.plan_processes("visible", suite, task.tests.visible, seconds, messages=True)
    with ZygotePool() as zygotes:
        surface = derive_surface(loaded_task)
        return SplitRun(loaded_task, surface, zygotes, 120.0).run(sources, processes, "as written")


def failures(run: VerifierRun) -> dict[str, str]:
    """The tests that did not pass, with what they said."""
    return {
        test: outcome.message or outcome.result for test, outcome in run.outcomes.items() if outcome.result != "passed"
    }


def _tree(files: Mapping[str, str]) -> SourceTree:
    return SourceTree({path: textwrap.dedent(text).encode() for path, text in files.items()})
