"""What each test of a task said, held-out ones included: for the author of the task or a person who grades.

A verdict never has this, because an agent may see a verdict. It is made on request, by a run of its own, kept nowhere,
and must not be shown to a policy.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gametape.core.task import TaskTests
from gametape.core.verdict import Verdict
from gametape.verify import jobs
from gametape.verify.preparation import PreparedTask, run_processes
from gametape.verify.result_counts import Results, worst_results
from gametape.verify.runner import ZygotePool
from gametape.verify.split_mode import run_split
from gametape.verify.submission import Submission
from gametape.verify.verifier_run import TestResult, VerifierRun, parse_report

_LONGEST_MESSAGE = 2000
_ERROR_LINE = re.compile(r"^E\s+(.*)$", re.MULTILINE)
_COMPARISON = re.compile(r"(?:AssertionError: )?assert (.+?) == (.+)")
_NO_MESSAGE = {
    "missing": "pytest did not find or did not report it",
    "timed_out": "it did not end in time",
    "skipped": "it was skipped",
    "failed": "it gave no message",
}
_PASSED_ONCE = "it passed when it was run once more: it is flaky, or a contradicting copy of it passed too"


@dataclass(frozen=True)
class TestDifference:
    """A test that did not pass, and what it said. `expected` and `actual` are the sides of a failed `==`, as text."""

    __test__ = False

    test: str
    held_out: bool
    outcome: TestResult
    message: str
    expected: str | None = None
    actual: str | None = None

    @property
    def summary(self) -> str:
        """The outcome and the first line of the error, on one line."""
        found = _ERROR_LINE.findall(self.message)
        text = found[0] if found else self.message.strip().rpartition("\n")[2]
        text = " ".join(text.removeprefix("AssertionError: ").split())
        return f"{self.outcome.replace('_', ' ')}: {text}"[:300]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class GradedVerdict:
    """A verdict with what only a grader may know."""

    verdict: Verdict
    differences: Sequence[TestDifference]
    """The tests that did not pass, in the order of the manifest."""
    results: Results
    """The worst result of each real test, whatever its contradicting copies did."""
    flaky: Sequence[str]
    """Tests that passed in one run and not in another."""


def run_with_messages(prepared: PreparedTask, submission: Submission, zygotes: ZygotePool) -> VerifierRun:
    """All tests once, with what held-out ones say too."""
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


def grade(
    verdict: Verdict, judged: Results, runs: Sequence[VerifierRun], told: VerifierRun, tests: TaskTests
) -> GradedVerdict:
    """`judged` is what the verdict counted, from `runs`; `told` is the run with messages."""
    results, flaky = worst_results(tests.every, [*runs, told])
    held_out = set(tests.held_out)
    differences = []
    for test in tests.every:
        outcome = judged[test] if judged[test] != "passed" else results[test]
        if outcome != "passed":
            differences.append(_difference(test, test in held_out, outcome, told))
    return GradedVerdict(verdict, differences, results, flaky)


def _difference(test: str, held_out: bool, outcome: TestResult, told: VerifierRun) -> TestDifference:
    reported = told.outcomes.get(test)
    message = reported.message[-_LONGEST_MESSAGE:] if reported else ""
    if told.result(test) == "passed":
        message = _PASSED_ONCE
    sides = next(filter(None, map(_COMPARISON.fullmatch, _ERROR_LINE.findall(message))), None)
    actual, expected = sides.groups() if sides else (None, None)
    return TestDifference(test, held_out, outcome, message or _NO_MESSAGE[outcome], expected, actual)
