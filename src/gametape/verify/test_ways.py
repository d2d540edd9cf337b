"""How each test of a task runs: by replay, live and apart from the code, or in one process with it.

Chosen test by test. What can run apart from the code decides a verdict; where that is not the larger half of the
feature's tests, all tests decide and the verdict is a shared one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gametape.core.task import Task, TaskTests
from gametape.core.verdict import VerificationMode
from gametape.record.loaded_task import LoadedTask
from gametape.verify import jobs
from gametape.verify.replay.recording import Recording
from gametape.verify.result_counts import feature_tests

_SHARED_BY_TASK = "mode"
"""The word for tests that could not be recorded because the task asks for shared mode."""


@dataclass(frozen=True)
class TestWays:
    """The way of each test of a task, and in a word why it is not replayed."""

    __test__ = False

    by_test: Mapping[str, VerificationMode]
    reasons: Mapping[str, str]

    def tests(self, way: VerificationMode) -> list[str]:
        return [test for test, own in self.by_test.items() if own == way]

    def count(self, tests: Sequence[str]) -> dict[VerificationMode, int]:
        """How many of these tests run in each way."""
        found = Counter(self.by_test[test] for test in tests)
        return {"replay": found["replay"], "split": found["split"], "shared": found["shared"]}

    def count_reasons(self) -> dict[str, int]:
        """Why tests are not replayed, the commonest reason first."""
        return dict(Counter(self.reasons.values()).most_common())

    def mode(self, tests: TaskTests) -> VerificationMode:
        """The mode of a verdict: the strongest in which half of the feature's visible tests and half of its held-out
        ones decide."""
        feature = feature_tests(tests) or tests.every
        held_out = set(tests.held_out)
        parts = [
            [test for test in feature if test not in held_out],
            [test for test in feature if test in held_out],
        ]
        counts = [self.count(part) for part in parts if part]
        if all(2 * count["replay"] >= sum(count.values()) for count in counts):
            return "replay"
        if all(2 * (count["replay"] + count["split"]) >= sum(count.values()) for count in counts):
            return "split"
        return "shared"

    def confirming(self, tests: TaskTests) -> list[str]:
        """The tests of the feature that only confirm: those that share a process with the code where others decide."""
        if self.mode(tests) == "shared":
            return []
        return [test for test in feature_tests(tests) if self.by_test[test] == "shared"]


NO_WAYS = TestWays({}, {})


def choose_ways(task: Task, recording: Recording | None) -> TestWays:
    """The strongest way of each test that the task allows and the recording shows to work."""
    unrecorded: VerificationMode = "split" if task.mode == "split" else "shared"
    by_test: dict[str, VerificationMode] = {}
    reasons: dict[str, str] = {}
    for test in task.tests.every:
        if recording and test in recording.transcripts:
            by_test[test] = "replay"
            continue
        by_test[test] = "split" if recording and test in recording.live else unrecorded
        reason = recording.reasons.get(test) if recording else None
        reasons[test] = reason.word if reason else _SHARED_BY_TASK if task.mode == "shared" else "reference"
    return TestWays(by_test, reasons)


def restrict_task(loaded_task: LoadedTask, tests: Sequence[str]) -> LoadedTask:
    """The task with these tests alone. The files of all others are gone, unless a test imports them."""
    wanted, task = set(tests), loaded_task.task
    own = task.tests
    kept = TaskTests(
        fail_to_pass=[test for test in own.fail_to_pass if test in wanted],
        pass_to_pass=[test for test in own.pass_to_pass if test in wanted],
        held_out=[test for test in own.held_out if test in wanted],
        held_out_passing=[test for test in own.held_out_passing if test in wanted],
    )
    files = {jobs.file_of(test) for test in own.every} - {jobs.file_of(test) for test in wanted}
    gone = files - jobs.imported_files(loaded_task.suite)
    return LoadedTask(
        task.model_copy(update={"tests": kept, "stages": []}),
        loaded_task.start.without(gone),
        loaded_task.suite.without(gone),
        loaded_task.reference and loaded_task.reference.without(gone),
        loaded_task.interpreter,
    )
