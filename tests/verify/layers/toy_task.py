"""A toy task, submissions for it and runs of it, made in memory."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gametape.core.task import Task, TaskTests
from gametape.core.verdict import TestCounts
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify.layers import ScoringContext
from gametape.verify.static_analysis.analyzer import StaticAnalyzer
from gametape.verify.submission import Submission
from gametape.verify.verifier_run import TestOutcome, VerifierRun

Files = Mapping[str, str | bytes]

TESTS = ["tests/test_m.py::test_a", "tests/test_m.py::test_b"]


def tree(files: Files) -> SourceTree:
    return SourceTree({path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()})


def toy_task(start: Files, reference: Files | None = None, suite: Files | None = None, **settings: Any) -> LoadedTask:
    """A task whose sources are in `src`; the reference is laid over the starting tree."""
    task = Task(
        name="toy",
        mode="shared",
        instruction="Do it.",
        source_paths=["src"],
        import_roots=["src"],
        tests=TaskTests(fail_to_pass=TESTS[:1], pass_to_pass=TESTS[1:]),
        **settings,
    )
    solution = None if reference is None else tree(reference).overlaid_on(tree(start))
    return LoadedTask(task=task, start=tree(start), suite=tree(suite or {}), reference=solution)


def scoring_context(
    loaded_task: LoadedTask,
    written: Files,
    removed: Sequence[str] = (),
    runs: tuple[VerifierRun, ...] = (),
    feature: tuple[int, int] = (1, 1),
    home: Path = Path("/nonexistent"),
    analyzer: StaticAnalyzer | None = None,
) -> ScoringContext:
    """A submission that wrote these files over the starting tree; `feature` is (passed, expected) of its tests."""
    workspace = tree(written).overlaid_on(loaded_task.start).without(set(removed))
    submission = Submission(
        loaded_task=loaded_task, sources=workspace.under(loaded_task.task.source_paths), workspace=workspace, links={}
    )
    counts = TestCounts(expected=feature[1] + 1, passed=feature[0] + 1)
    return ScoringContext(
        submission=submission,
        runs=runs,
        counts=counts,
        feature=TestCounts(expected=feature[1], passed=feature[0]),
        analyzer=analyzer or StaticAnalyzer(home),
    )


def run(**outcomes: str) -> VerifierRun:
    """A run by test letter: `run(a="passed", b="failed: E   NameError: x")`."""
    results = {}
    for letter, text in outcomes.items():
        result, _, message = text.partition(": ")
        test = f"tests/test_m.py::test_{letter}"
        results[test] = TestOutcome(test, result, message=message)  # type: ignore[arg-type]
    return VerifierRun(outcomes=results)
