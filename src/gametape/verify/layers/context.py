"""What a layer reads, and the rule that scales every layer by the progress of the tests.

The reward is a weighted sum, so a layer that gives a full score to an untouched workspace would pay for doing nothing:
deleted code has no type errors, a comment has no complexity, an empty function is easily covered. Hence the score of
every layer other than the tests is multiplied by the share of the *feature's* tests that pass: those that fail in the
starting tree, held-out ones included. An untouched, emptied or padded workspace gets nothing for being clean; a
half-working one gets half; a complete one gets the whole score. The tests follow the same rule: tests that the starting
tree passes earn nothing, and breaking them costs.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from gametape.core.task import TaskTestGroup
from gametape.core.verdict import Check, TestCounts
from gametape.record.source_tree import SourceTree
from gametape.verify.layers.structure import new_violations
from gametape.verify.layers.tree_change import TreeChange, compare_trees
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
    """By group, over the feature's tests, where the task declares groups."""

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
        """The share of the task that is done: the share of the feature's tests that pass, or, where the task is about
        structure alone and no test fails at the start, the share of the broken rules that now hold.

        Visible and held-out tests are combined by the harmonic mean: about the average where both have the same share,
        as in an honest partial solution, and 0 where only visible tests pass, as with a table of their answers.
        """
        if self.feature.expected:
            return _harmonic_mean(self.feature)
        task = self.submission.loaded_task.task
        broken = len(new_violations(task, self.start, self.trusted) or ())
        if broken:
            return max(0.0, 1 - len(new_violations(task, self.sources, self.trusted) or ()) / broken)
        return self.counts.passed / self.counts.expected if self.counts.expected else 0.0

    @property
    def unbroken_share(self) -> float:
        """The share of the tests that the starting tree passes that still pass."""
        expected = self.counts.expected - self.feature.expected
        return (self.counts.passed - self.feature.passed) / expected if expected else 1.0

    def check(self, name: str, score: float, detail: str) -> Check:
        """A layer's check, with its score scaled by the progress of the tests."""
        if self.nothing_written:
            return Check(name=name, score=0.0, detail="nothing was written")
        if self.progress < 1:
            share = f"{self.feature.passed} of {self.feature.expected}" if self.feature.expected else "a part"
            detail = f"{score:.2f} for what is there, counted for {share} of the feature's tests passed: {detail}"
        return Check(
            name=name,
            score=min(1.0, max(0.0, score)) * self.progress * self.unbroken_share,
            detail=detail[:_LONGEST_DETAIL],
        )


def _harmonic_mean(counts: TestCounts) -> float:
    visible = counts.expected - counts.held_out_expected
    if not visible or not counts.held_out_expected:
        return counts.passed / counts.expected
    visible_share = (counts.passed - counts.held_out_passed) / visible
    held_out_share = counts.held_out_passed / counts.held_out_expected
    total = visible_share + held_out_share
    return 2 * visible_share * held_out_share / total if total else 0.0
