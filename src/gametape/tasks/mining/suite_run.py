"""Run the whole suite over a changed tree, in one process, which costs what the bare suite costs.

Verdicts run every test file in a process of its own, and there the map was made that says which tests to expect to
fail. So where a test does what the map says, the one process is believed: it ran the deleted code there too, or never
comes near it. Where it does anything else, its file is run again in its own process, and that decides.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.baseline import SuiteBaseline
from gametape.verify.jobs import group_by_file
from gametape.verify.verifier_run import TestResult
from gametape.verify.warm_runner import PytestRequest, WarmTestRunner

_MOST_HANGING = 3
"""Tests of one file that may hang before the rest of it is taken for hanging too."""


@dataclass(frozen=True)
class SuiteOutcome:
    """What became of tests, and what was said about those that failed."""

    results: Mapping[str, TestResult]
    messages: Mapping[str, str]

    def failing(self) -> list[str]:
        """In the order of the suite. A test that hangs says nothing that a verdict could wait for."""
        return [test for test, result in self.results.items() if result not in ("passed", "timed_out")]

    def hanging(self) -> list[str]:
        return [test for test, result in self.results.items() if result == "timed_out"]


def changed_files(before: SourceTree, after: SourceTree) -> dict[str, bytes]:
    """The files that are new or different."""
    return {path: content for path, content in after.files.items() if before.files.get(path) != content}


def run_suite(
    surveyor: WarmTestRunner, baseline: SuiteBaseline, overlay: Mapping[str, bytes], expected_failing: Collection[str]
) -> SuiteOutcome:
    """All reliable tests over the tree with these files changed. `expected` are those that the map lets fail."""
    files = group_by_file(baseline.tests)
    runner = _Runner(surveyor, baseline, overlay)
    runner.run([test for file in files if file in baseline.together for test in files[file]])
    as_expected = {
        test for test in runner.results if runner.results[test] == ("failed" if test in expected_failing else "passed")
    }
    for ids in files.values():
        if not as_expected.issuperset(ids):
            runner.run([test for test in ids if runner.results.get(test) != "timed_out"])
    return SuiteOutcome({test: runner.results[test] for test in baseline.tests}, runner.messages)


def run_tests(
    surveyor: WarmTestRunner, baseline: SuiteBaseline, overlay: Mapping[str, bytes], tests: Collection[str]
) -> SuiteOutcome:
    """Some tests, in a process per file."""
    runner = _Runner(surveyor, baseline, overlay)
    for ids in group_by_file(tests).values():
        runner.run(ids)
    return SuiteOutcome(runner.results, runner.messages)


@dataclass
class _Runner:
    """Collects what becomes of tests over one changed tree; a later word replaces an earlier one."""

    surveyor: WarmTestRunner
    baseline: SuiteBaseline
    overlay: Mapping[str, bytes]
    results: dict[str, TestResult] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)

    def run(self, ids: Sequence[str]) -> None:
        """In one process. What hangs is left out and those after it run again, so that nobody is taken for hanging
        who only came later."""
        for _ in range(_MOST_HANGING):
            if not ids:
                return
            files = tuple(group_by_file(ids))
            seconds = sum(map(self.baseline.seconds_for, files))
            step = PytestRequest(files, tuple(ids), self.overlay, seconds=seconds, silence=self.baseline.silence)
            found = self.surveyor.run(step)
            for test in ids:
                self.results[test] = found.result(test)
                self.messages[test] = found.message(test)
            ids = [test for test in ids if self.results[test] == "timed_out"][1:]
