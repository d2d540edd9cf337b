"""What each test of a task said, held-out ones included: for the author of the task or a person who grades.

A verdict never has this, because an agent may see a verdict. It is made on request, kept nowhere, and must not be shown
to a policy. A recorded test has its first difference: what was asked, what the reference answered, what came instead.
Tests that are not recorded are run once more to hear their messages.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gametape.core.verdict import Verdict
from gametape.verify import jobs
from gametape.verify.fresh.judge import FreshResult
from gametape.verify.preparation import PreparedTask, run_processes
from gametape.verify.replay.comparison import Difference
from gametape.verify.result_counts import Results, worst_results
from gametape.verify.runner import ZygotePool
from gametape.verify.submission import Submission
from gametape.verify.test_message import compared_values, summarize_message
from gametape.verify.transcript_text import describe_answer, describe_request, object_names
from gametape.verify.verdict_runs import VerdictRuns, run_split
from gametape.verify.verifier_run import TestResult, VerifierRun, parse_report

DifferenceKind = Literal["test", "recorded", "fresh", "tolerated"]
"""`test`: a test without a recording that did not pass. `recorded`: a recorded one that did not pass. `fresh`: a fresh
call that was answered otherwise. `tolerated`: a transcript that differed although its test passed when it was run."""

_LONGEST_MESSAGE, _LONGEST_SUMMARY = 2000, 300
_NO_MESSAGE = {
    "missing": "pytest did not find or did not report it",
    "timed_out": "it did not end in time",
    "skipped": "it was skipped",
    "failed": "it gave no message",
}
_PASSED_ONCE = "it passed when it was run once more: it is flaky, or a contradicting copy of it passed too"


@dataclass(frozen=True)
class TestDifference:
    """A test that did not pass, or a call that was answered otherwise. `expected` and `actual` are the two answers, or
    the sides of a failed `==`, as text; `input` is what was asked."""

    __test__ = False

    test: str
    held_out: bool
    outcome: TestResult
    message: str
    expected: str | None = None
    actual: str | None = None
    input: str | None = None
    kind: DifferenceKind = "test"

    @property
    def summary(self) -> str:
        """The outcome and what differed, on one line."""
        if self.input is not None:
            text = f"{self.input}: expected {self.expected}, got {self.actual}"
            return f"{self.outcome.replace('_', ' ')}: {' '.join(text.split())}"[:_LONGEST_SUMMARY]
        return f"{self.outcome.replace('_', ' ')}: {summarize_message(self.message)}"[:_LONGEST_SUMMARY]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class GradedVerdict:
    """A verdict with what only a grader may know."""

    verdict: Verdict
    differences: Sequence[TestDifference]
    """The tests that did not pass, in the order of the manifest."""
    others: Sequence[TestDifference]
    """Fresh calls that were answered otherwise, and transcripts that differed although their tests passed."""
    results: Results
    """The worst result of each real test, whatever its contradicting copies did."""
    flaky: Sequence[str]
    """Tests that passed in one run and not in another."""


def grade(
    verdict: Verdict,
    judged: Results,
    runs: VerdictRuns,
    fresh: FreshResult | None,
    prepared: PreparedTask,
    submission: Submission,
    zygotes: ZygotePool,
) -> GradedVerdict:
    """`judged` is what the verdict counted, from `runs` and `fresh`."""
    tests = prepared.loaded_task.task.tests
    told = _run_with_messages(prepared.unrecorded, submission, zygotes) if prepared.unrecorded else VerifierRun({})
    results, flaky = worst_results(tests.every, [*runs.real, told])
    held_out = set(tests.held_out)
    differences, others = [], []
    for test in tests.every:
        outcome = judged[test] if judged[test] != "passed" else results[test]
        recorded = runs.differences.get(test)
        if recorded is not None and outcome == "passed":
            others.append(_recorded(prepared, test, test in held_out, outcome, recorded, "tolerated"))
        elif recorded is not None:
            differences.append(_recorded(prepared, test, test in held_out, outcome, recorded, "recorded"))
        elif outcome != "passed":
            differences.append(
                _difference(test, test in held_out, outcome, told if test in told.outcomes else runs.real[0])
            )
    for each in fresh.differences if fresh else ():
        message = f"{each.input}: expected {each.expected}, got {each.got}"
        others.append(
            TestDifference(each.function, True, "failed", message, each.expected, each.got, each.input, "fresh")
        )
    return GradedVerdict(verdict, differences, others, results, flaky)


def _run_with_messages(prepared: PreparedTask, submission: Submission, zygotes: ZygotePool) -> VerifierRun:
    """The tests that are not recorded once more, with what held-out ones say too."""
    loaded_task = prepared.loaded_task
    if loaded_task.task.mode == "split":
        return run_split(prepared, submission.sources, zygotes, held_out_messages=True)
    processes = jobs.plan_processes(
        "grader",
        loaded_task.suite,
        loaded_task.task.tests.every,
        prepared.file_seconds,
        messages=True,
        blank=prepared.blank,
    )
    return parse_report(
        run_processes(prepared, submission.sources, zygotes, loaded_task.suite, processes), processes, "grader"
    )


def _recorded(
    prepared: PreparedTask, test: str, held_out: bool, outcome: TestResult, found: Difference, kind: DifferenceKind
) -> TestDifference:
    assert prepared.recording is not None
    names = object_names(prepared.recording.transcripts[test])
    asked = describe_request(found.request, names)
    expected, actual = describe_answer(found.expected, names), describe_answer(found.actual, names)
    message = f"{asked}: expected {expected}, got {actual}"
    return TestDifference(test, held_out, outcome, message, expected, actual, asked, kind)


def _difference(test: str, held_out: bool, outcome: TestResult, told: VerifierRun) -> TestDifference:
    reported = told.outcomes.get(test)
    message = reported.message[-_LONGEST_MESSAGE:] if reported else ""
    if told.result(test) == "passed":
        message = _PASSED_ONCE
    expected, actual = compared_values(message) or (None, None)
    return TestDifference(test, held_out, outcome, message or _NO_MESSAGE[outcome], expected, actual)
