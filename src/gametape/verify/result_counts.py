"""From runs to counts: a test counts as passed when every real run of it passed, and as nothing better otherwise."""

from collections.abc import Iterable

from gametape.core.task import TaskTestGroup, TaskTests
from gametape.core.verdict import FailedTest, Signal, StageResult, TestCounts
from gametape.record.loaded_task import LoadedTask
from gametape.verify.verifier_run import TestResult, VerifierRun

_WORST_FIRST: tuple[TestResult, ...] = ("missing", "timed_out", "failed", "skipped", "passed")
_MOST_FAILURES, _LONGEST_MESSAGE = 20, 2000
Results = dict[str, TestResult]


def worst_results(tests: Iterable[str], runs: Iterable[VerifierRun]) -> tuple[Results, list[str]]:
    """The worst that each test did in these runs, and the tests on which they disagree.

    A run that broke down says nothing about chance: whatever came after would have failed.
    """
    seen: dict[str, set[TestResult]] = {test: set() for test in tests}
    steady: dict[str, set[TestResult]] = {test: set() for test in seen}
    for run in runs:
        for test in run.outcomes.keys() & seen.keys():
            seen[test].add(run.result(test))
            if not run.broke_down:
                steady[test].add(run.result(test))
    settled: Results = {
        test: next(one for one in _WORST_FIRST if one in found) if found else "missing" for test, found in seen.items()
    }
    torn = [test for test, found in steady.items() if "passed" in found and len(found) > 1]
    return settled, torn


def count_results(results: Results, tests: Iterable[str], held_out: Iterable[str] = ()) -> TestCounts:
    """How these tests fared; the held-out ones among them are also counted apart."""
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
    """The tests that the starting tree fails. Where it fails none that are shown, it fails none that are not."""
    passing = {*tests.held_out_passing}
    return (
        [*tests.fail_to_pass, *(test for test in tests.held_out if test not in passing)] if tests.fail_to_pass else []
    )


def count_groups(results: Results, tests: TaskTests) -> dict[TaskTestGroup, TestCounts]:
    """The feature's tests by group, where the task tells them apart."""
    if not tests.groups:
        return {}
    found: dict[TaskTestGroup, list[str]] = {}
    for test in feature_tests(tests):
        found.setdefault(tests.group_of(test), []).append(test)
    return {group: count_results(results, ids, tests.held_out) for group, ids in found.items()}


def stage_results(results: Results, loaded_task: LoadedTask) -> list[StageResult]:
    """A stage is reached when its tests pass and those of every earlier stage still do."""
    reached, so_far = [], True
    for stage in loaded_task.task.stages:
        counts = count_manifest(results, stage.tests)
        so_far = so_far and counts.all_passed
        reached.append(StageResult(name=stage.name, passed=so_far, tests=counts))
    return reached


def visible_failures(results: Results, tests: TaskTests, shown: VerifierRun) -> list[FailedTest]:
    """The first visible tests that did not pass, with what the run that may be shown said about them."""
    found: list[FailedTest] = []
    for test in tests.visible:
        result = results[test]
        if result != "passed" and len(found) < _MOST_FAILURES:
            outcome = shown.outcomes.get(test)
            message = outcome.message[-_LONGEST_MESSAGE:] if outcome else ""
            found.append(FailedTest(test=test, result=result, message=message))
    return found


def held_out_gap(counts: TestCounts) -> Signal | None:
    """Visible tests passing where held-out ones do not: worth knowing, and just what an honest part looks like."""
    visible = counts.expected - counts.held_out_expected
    passed = counts.passed - counts.held_out_passed
    if not visible or not counts.held_out_expected or counts.held_out_passed == counts.held_out_expected:
        return None
    if passed / visible - counts.held_out_passed / counts.held_out_expected < 0.2:
        return None
    hidden = f"{counts.held_out_passed} of {counts.held_out_expected} held-out ones"
    return Signal(name="held-out gap", detail=f"{passed} of {visible} visible tests passed, {hidden}")
