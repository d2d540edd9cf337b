"""From runs to counts. A test counts as passed only when it passed in every run of the real test."""

from collections.abc import Iterable

from gametape.core.task import TaskTestGroup, TaskTests
from gametape.core.verdict import FailedTest, Signal, StageResult, TestCounts
from gametape.record.loaded_task import LoadedTask
from gametape.verify.replay.comparison import printable
from gametape.verify.verifier_run import TestResult, VerifierRun

_WORST_FIRST: tuple[TestResult, ...] = ("missing", "timed_out", "failed", "skipped", "passed")
_MOST_FAILURES, _LONGEST_MESSAGE = 20, 2000
Results = dict[str, TestResult]


def worst_results(tests: Iterable[str], runs: Iterable[VerifierRun]) -> tuple[Results, list[str]]:
    """The worst result of each test in these runs, and the flaky tests, on which the runs disagree.

    A run that broke down does not count as disagreement: every test after the break would have failed.
    """
    seen: dict[str, set[TestResult]] = {test: set() for test in tests}
    steady: dict[str, set[TestResult]] = {test: set() for test in seen}
    for run in runs:
        for test in run.outcomes.keys() & seen.keys():
            seen[test].add(run.result(test))
            if not run.broke_down:
                steady[test].add(run.result(test))
    worst: Results = {
        test: next(result for result in _WORST_FIRST if result in reported) if reported else "missing"
        for test, reported in seen.items()
    }
    flaky = [test for test, reported in steady.items() if "passed" in reported and len(reported) > 1]
    return worst, flaky


def count_results(results: Results, tests: Iterable[str], held_out: Iterable[str] = ()) -> TestCounts:
    """Counts over these tests; the held-out ones among them are also counted separately."""
    wanted = [*tests]
    hidden = [test for test in held_out if test in set(wanted)]

    def number(result: TestResult) -> int:
        return sum(results[test] == result for test in wanted)

    return TestCounts(
        expected=len(wanted),
        passed=number("passed"),
        failed=number("failed"),
        missing=number("missing"),
        skipped=number("skipped"),
        timed_out=number("timed_out"),
        held_out_expected=len(hidden),
        held_out_passed=sum(results[test] == "passed" for test in hidden),
    )


def count_manifest(results: Results, tests: TaskTests) -> TestCounts:
    return count_results(results, tests.every, tests.held_out)


def feature_tests(tests: TaskTests) -> list[str]:
    """The tests that the starting tree fails. If it fails no visible test, it fails no held-out one either."""
    passing = {*tests.held_out_passing}
    return (
        [*tests.fail_to_pass, *(test for test in tests.held_out if test not in passing)] if tests.fail_to_pass else []
    )


def count_groups(results: Results, tests: TaskTests, deciding: Iterable[str]) -> dict[TaskTestGroup, TestCounts]:
    """The feature's tests that decide by group, where the task declares groups."""
    if not tests.groups:
        return {}
    by_group: dict[TaskTestGroup, list[str]] = {}
    for test in deciding:
        by_group.setdefault(tests.group_of(test), []).append(test)
    return {group: count_results(results, ids, tests.held_out) for group, ids in by_group.items()}


def stage_results(results: Results, loaded_task: LoadedTask) -> list[StageResult]:
    """A stage is passed when its tests and those of every earlier stage pass."""
    reached, so_far = [], True
    for stage in loaded_task.task.stages:
        counts = count_manifest(results, stage.tests)
        so_far = so_far and counts.all_passed
        reached.append(StageResult(name=stage.name, passed=so_far, tests=counts))
    return reached


def visible_failures(results: Results, tests: TaskTests, runs: Iterable[VerifierRun]) -> list[FailedTest]:
    """The first visible tests that did not pass, with their messages from the runs that an agent may see."""
    outcomes: dict[str, str] = {}
    for run in runs:
        for test, outcome in run.outcomes.items():
            if outcome.result != "passed":
                outcomes.setdefault(test, outcome.message)
    failed = [test for test in tests.visible if results[test] != "passed"][:_MOST_FAILURES]
    return [_failed_test(test, results[test], printable(outcomes.get(test, "")[-_LONGEST_MESSAGE:])) for test in failed]


def _failed_test(test: str, result: TestResult, message: str) -> FailedTest:
    assert result != "passed"
    return FailedTest(test=test, result=result, message=message)


def held_out_gap(counts: TestCounts) -> Signal | None:
    """A signal where visible tests pass and held-out ones do not. An honest partial solution looks like that too."""
    visible = counts.expected - counts.held_out_expected
    passed = counts.passed - counts.held_out_passed
    if not visible or not counts.held_out_expected or counts.held_out_passed == counts.held_out_expected:
        return None
    if passed / visible - counts.held_out_passed / counts.held_out_expected < 0.2:
        return None
    hidden = f"{counts.held_out_passed} of {counts.held_out_expected} held-out ones"
    return Signal(name="held-out gap", detail=f"{passed} of {visible} visible tests passed, {hidden}")
