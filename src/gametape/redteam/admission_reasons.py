"""Why a task is not admitted, from what its starting tree and its reference showed."""

from collections.abc import Iterator, Mapping, Sequence

from gametape.core.verdict import Verdict
from gametape.record.loaded_task import LoadedTask
from gametape.tasks.readable_sources import find_unreadable_reference, find_unreadable_start
from gametape.verify.grader_report import GradedVerdict, TestDifference
from gametape.verify.progress import Floor, agrees_enough
from gametape.verify.result_counts import feature_tests
from gametape.verify.test_ways import TestWays

_NAMED = 3
"""Tests that a reason names; the others are counted."""
_NO_HELD_OUT = "there are no held-out tests: a table of the visible answers would pass"
_NO_REFERENCE = "there is no reference that shows the task can be solved (solution/files)"
_NO_CHANGE = "the reference changes nothing: solution/files has the same files as environment/workspace"


def mode_reasons(loaded_task: LoadedTask, ways: TestWays) -> Iterator[str]:
    """A task that says it is replayed and is not: training relies on what it says."""
    task = loaded_task.task
    if task.mode != "replay" or ways.mode(task.tests) != "shared":
        return
    counts = ways.count(feature_tests(task.tests) or task.tests.every)
    yield (
        f"mode: task.toml says replay, but {counts['shared']} of {sum(counts.values())} tests of the feature run in "
        f"one process with the code ({count_words(ways.count_reasons())}): write them without that, or say shared"
    )


def floor_reasons(floor: Floor) -> Iterator[str]:
    """What speaks against a task because a program that does no work is paid by it."""
    if floor.passes:
        yield f"a trivial program passes ({floor.program}): the tests ask for nothing"


def count_words(counts: Mapping[str, int]) -> str:
    """`callback 3, argument 1`."""
    return ", ".join(f"{word} {number}" for word, number in counts.items())


def start_reasons(loaded_task: LoadedTask, untouched: GradedVerdict) -> Iterator[str]:
    """What speaks against the tree that an agent starts from."""
    if not loaded_task.task.tests.held_out:
        yield _NO_HELD_OUT
    unreadable = find_unreadable_start(loaded_task)
    for source in unreadable:
        yield f"{source}; an agent has to start from source that can be read"
    if untouched.verdict.passed:
        yield "the untouched tree passes: the task asks for nothing"
    elif not unreadable:
        yield from _role_reasons(loaded_task, untouched)


def _role_reasons(loaded_task: LoadedTask, untouched: GradedVerdict) -> Iterator[str]:
    """Tests whose result at the start is not what their role says."""
    tests, results = loaded_task.task.tests, untouched.results
    told = {difference.test: difference.summary for difference in untouched.differences}
    flaky = set(untouched.flaky)
    keeping = {"pass_to_pass": tests.pass_to_pass, "held_out_passing": tests.held_out_passing}
    for role, ids in keeping.items():
        unsteady = [test for test in ids if test in flaky]
        broken = [f"{test} ({told.get(test, results[test])})" for test in ids if results[test] != "passed"]
        if unsteady:
            yield f"{role}: {_named(unsteady)} passes in one run at the start and not in another: mend or remove it"
        elif broken:
            yield (
                f"{role}: {_named(broken)} does not pass at the start: mend the starting tree, or take the test out "
                f"of {role}"
            )
    if early := [test for test in tests.fail_to_pass if results[test] == "passed"]:
        yield f"fail_to_pass: {_named(early)} passes at the start already: move it to pass_to_pass"
    if odd := [test for test in tests.fail_to_pass if test in flaky]:
        yield f"fail_to_pass: {_named(odd)} passes in one run at the start and not in another: mend or remove it"


def reference_reasons(
    loaded_task: LoadedTask, reference: Sequence[Verdict], differences: Sequence[TestDifference]
) -> Iterator[str]:
    """What speaks against the reference."""
    if loaded_task.reference is None:
        yield _NO_REFERENCE
        return
    failed = [verdict for verdict in reference if not verdict.passed]
    if not failed:
        return
    if loaded_task.reference == loaded_task.start:
        yield _NO_CHANGE
        return
    passed = f"the reference passed {len(reference) - len(failed)} of {len(reference)} runs"
    if unreadable := find_unreadable_reference(loaded_task):
        yield f"{passed}: {unreadable[0]}"
        return
    yield f"{passed}: {_why_not(failed[0])}"
    absent = [each.test for each in differences if each.outcome == "missing"]
    if absent:
        yield f"{_named(absent)}: pytest does not find it in tests/suite: correct the id in task.toml, or remove it"
    others = [f"{each.test} ({each.summary})" for each in differences if each.outcome != "missing"]
    if others:
        yield f"the reference does not pass {_named(others)}: mend the reference or the test"


def _named(tests: Sequence[str]) -> str:
    more = f" and {len(tests) - _NAMED} more" if len(tests) > _NAMED else ""
    return ", ".join(tests[:_NAMED]) + more


def _why_not(verdict: Verdict) -> str:
    """The main reason why a verdict is not a pass, in a few words."""
    tests = verdict.tests
    if verdict.integrity:
        flag = verdict.integrity[0]
        return f"{flag.severity} {flag.rule} ({flag.evidence})"
    if verdict.quarantined:
        return "; ".join(f"{signal.name}: {signal.detail}" for signal in verdict.signals) or "two runs disagreed"
    if not tests.all_passed:
        hidden = f", {tests.held_out_passed} of {tests.held_out_expected} held out" if tests.held_out_expected else ""
        return f"{tests.passed} of {tests.expected} tests passed{hidden}"
    if verdict.fresh and not agrees_enough(verdict.fresh):
        return f"{verdict.fresh.agreed} of {verdict.fresh.calls} fresh calls agreed"
    broken = [f"{check.name}: {check.detail}" for check in verdict.checks if check.score < 1]
    return "; ".join(broken) or "; ".join(signal.name for signal in verdict.signals) or "twins passed"
