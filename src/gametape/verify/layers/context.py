"""What a layer reads, and the rule that scales every layer by the progress of the tests.

The reward is a weighted sum, so a layer that gives a full score to an untouched workspace would pay for doing nothing:
deleted code has no type errors, a comment has no complexity, an empty function is easily covered. Hence the score of
every layer other than the tests is multiplied by the progress of the *feature* (`verify.progress`): its tests are those
that fail in the starting tree, held-out ones included. An untouched, emptied or padded workspace gets nothing for being
clean; a half-working one gets half; a complete one gets the whole score. The tests follow the same rule: tests that the
starting tree passes earn nothing, and breaking them costs.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from gametape.core.task import TaskTestGroup
from gametape.core.verdict import Check, FreshCalls, TestCounts
from gametape.record.source_tree import SourceTree
from gametape.verify.layers.structure import new_violations
from gametape.verify.layers.tree_change import TreeChange, compare_trees
from gametape.verify.progress import NO_FLOOR, NO_TESTS, Floor, ProgressCounts, above_floor, group_progress
from gametape.verify.static_analysis.analyzer import StaticAnalyzer
from gametape.verify.static_analysis.python_source import own_sources
from gametape.verify.submission import Submission
from gametape.verify.verifier_run import VerifierRun

_LONGEST_DETAIL = 2000


@dataclass(frozen=True)
class ScoringContext:
    """A submission, its runs and its counts."""

    submission: Submission
    runs: tuple[VerifierRun, ...]
    """Runs over the real tests: a layer would take the results of twins for errors."""
    counts: TestCounts
    """Over all tests of the task, held-out ones included."""
    feature: TestCounts
    """Over the tests that the starting tree fails: fail-to-pass and held-out ones. Empty where it fails none."""
    analyzer: StaticAnalyzer
    groups: Mapping[TaskTestGroup, TestCounts] = field(default_factory=dict)
    """By group, over the feature's tests that decide, where the task declares groups."""
    confirming: TestCounts = NO_TESTS
    """Over the feature's tests that confirm and do not decide (see `verify.progress`)."""
    fresh: FreshCalls | None = None
    floor: Floor = NO_FLOOR

    @functools.cached_property
    def sources(self) -> SourceTree:
        return own_sources(self.submission.loaded_task.task, self.submission.sources)

    @functools.cached_property
    def start(self) -> SourceTree:
        return own_sources(self.submission.loaded_task.task, self.submission.loaded_task.start)

    @functools.cached_property
    def reference(self) -> SourceTree | None:
        loaded_task = self.submission.loaded_task
        return None if loaded_task.reference is None else own_sources(loaded_task.task, loaded_task.reference)

    @functools.cached_property
    def change(self) -> TreeChange:
        """How the submission changed the sources."""
        return compare_trees(self.start, self.sources)

    @functools.cached_property
    def reference_change(self) -> TreeChange | None:
        """How the reference changes them."""
        return None if self.reference is None else compare_trees(self.start, self.reference)

    @functools.cached_property
    def task_lines(self) -> int:
        """The size of the task in lines of code, against which findings are counted.

        It is the size of the reference where there is one, so that a submission cannot dilute its findings by writing
        more.
        """
        return self.change.lines_written if self.reference_change is None else self.reference_change.lines_written

    @functools.cached_property
    def nothing_written(self) -> bool:
        """Whether no line of code was changed, although the task asks for it."""
        return self.change.size == 0 and (self.reference_change is None or self.reference_change.size > 0)

    @property
    def trusted(self) -> SourceTree:
        """The sources whose findings do not count: the reference, else the starting tree."""
        return self.start if self.reference is None else self.reference

    @functools.cached_property
    def progress(self) -> float:
        """The share of the task that is done, by its tests and fresh calls (see `verify.progress`), or, where the task
        is about structure alone and no test fails at the start, the share of the broken rules that now hold."""
        if self.feature.expected:
            return self.progress_counts.above(self.floor.progress)
        task = self.submission.loaded_task.task
        broken = len(new_violations(task, self.start, self.trusted) or ())
        if broken:
            return max(0.0, 1 - len(new_violations(task, self.sources, self.trusted) or ()) / broken)
        return self.counts.passed / self.counts.expected if self.counts.expected else 0.0

    @functools.cached_property
    def progress_counts(self) -> ProgressCounts:
        deciding = TestCounts(
            expected=self.feature.expected - self.confirming.expected,
            passed=self.feature.passed - self.confirming.passed,
            held_out_expected=self.feature.held_out_expected - self.confirming.held_out_expected,
            held_out_passed=self.feature.held_out_passed - self.confirming.held_out_passed,
        )
        return ProgressCounts(deciding, self.confirming, self.fresh)

    def progress_of_group(self, group: TaskTestGroup) -> float:
        """The progress of one group of the feature's tests."""
        progress = group_progress(self.groups[group], self.progress_counts)
        return above_floor(progress, self.floor.groups.get(group, 0.0))

    @property
    def unbroken_share(self) -> float:
        """The share of the tests that the starting tree passes that still pass."""
        expected = self.counts.expected - self.feature.expected
        return (self.counts.passed - self.feature.passed) / expected if expected else 1.0

    @property
    def tests_score(self) -> float:
        """The score of the layer `tests`, and a factor of every other."""
        return self.progress * self.unbroken_share

    def check(self, name: str, score: float, detail: str) -> Check:
        """A layer's check, with its score scaled by the progress of the tests."""
        if self.nothing_written:
            return Check(name=name, score=0.0, detail="nothing was written")
        score = min(1.0, max(0.0, score))
        if self.tests_score < 1:
            detail = f"{score:.2f}, times {self.tests_score:.2f} for the tests: {detail}"
        return Check(name=name, score=score * self.tests_score, detail=detail[:_LONGEST_DETAIL])
