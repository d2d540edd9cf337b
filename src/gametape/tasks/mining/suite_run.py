"""Run the suite over a changed tree, in one process, at the cost of one plain run of the suite.

Verdicts run every test file in its own process, and so did the run that made the coverage map. Where a test does what
the map predicts, the result of the one process is used. Where it does not, its file runs again in its own process, and
that result is used.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.baseline import SuiteBaseline
from gametape.verify.jobs import group_by_file
from gametape.verify.verifier_run import TestResult
from gametape.verify.warm_runner import PytestRequest, WarmTestRunner

_MOST_HANGING = 3
"""Tests of one file that may hang before the rest of it counts as hanging too."""


@dataclass(frozen=True)
class SuiteOutcome:
    """The results of tests, and the messages of those that failed."""

    results: Mapping[str, TestResult]
    messages: Mapping[str, str]

    def failing(self) -> list[str]:
        """The failing tests in the order of the suite. A hanging test is not one: no verdict could wait for it."""
        return [test for test, result in self.results.items() if result not in ("passed", "timed_out")]

    def hanging(self) -> list[str]:
        return [test for test, result in self.results.items() if result == "timed_out"]


def changed_files(before: SourceTree, after: SourceTree) -> dict[str, bytes]:
    """The files of `after` that are new or different."""
    return {path: content for path, content in after.files.items() if before.files.get(path) != content}


def run_suite(
    test_runner: WarmTestRunner,
    baseline: SuiteBaseline,
    overlay: Mapping[str, bytes],
    expected_failing: Collection[str],
) -> SuiteOutcome:
    """Run all reliable tests over the tree with these files changed. The map predicts `expected_failing`."""
    files = group_by_file(baseline.tests)
    runner = _Runner(test_runner, baseline, overlay)
    runner.run([test for file in files if file in baseline.together for test in files[file]])
    as_expected = {
        test for test in runner.results if runner.results[test] == ("failed" if test in expected_failing else "passed")
    }
    for ids in files.values():
        if not as_expected.issuperset(ids):
            runner.run([test for test in ids if runner.results.get(test) != "timed_out"])
    return SuiteOutcome({test: runner.results[test] for test in baseline.tests}, runner.messages)


def run_tests(
    test_runner: WarmTestRunner, baseline: SuiteBaseline, overlay: Mapping[str, bytes], tests: Collection[str]
) -> SuiteOutcome:
    """Run some tests, one process per file."""
    runner = _Runner(test_runner, baseline, overlay)
    for ids in group_by_file(tests).values():
        runner.run(ids)
    return SuiteOutcome(runner.results, runner.messages)


@dataclass
class _Runner:
    """Collects the results of tests over one changed tree; a later result replaces an earlier one."""

    surveyor: WarmTestRunner
    baseline: SuiteBaseline
    overlay: Mapping[str, bytes]
    results: dict[str, TestResult] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)

    def run(self, ids: Sequence[str]) -> None:
        """Run tests in one process. After a hang, the tests behind the hanging one run again, because they have no
        result of their own."""
        for _ in range(_MOST_HANGING):
            if not ids:
                return
            files = tuple(group_by_file(ids))
            seconds = sum(map(self.baseline.seconds_for, files))
            request = PytestRequest(files, tuple(ids), self.overlay, seconds=seconds, silence=self.baseline.silence)
            result = self.surveyor.run(request)
            for test in ids:
                self.results[test] = result.result(test)
                self.messages[test] = result.message(test)
            ids = [test for test in ids if self.results[test] == "timed_out"][1:]
