"""What a layer looks at, and the one rule that all layers but the tests share.

**Tidiness is worth as much as what works.** The reward is a weighted sum, so a layer that is content with a workspace
in which nothing was done would pay for doing nothing: deleted code has no type errors, a comment has no complexity,
an empty function is easily covered. Hence the score of every layer other than the tests is multiplied by the share of
the *feature's* tests that pass: those that fail in the starting tree, held-out ones among them. An untouched, emptied
or padded workspace gets nothing for being clean; a half-working one gets half; a complete one gets the whole score.
The tests follow the same rule: what passed before the task was begun earns nothing, and costs when it is broken.
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
    """An attempt, and everything that was seen of it."""

    submission: Submission
    runs: tuple[VerifierRun, ...]
    """Runs over the tests as they are: outcomes of mutated ones would be mistaken for errors."""
    counts: TestCounts
    """Over the whole manifest; the held-out tests are among those expected."""
    feature: TestCounts
    """Over the tests that fail in the starting tree: fail-to-pass and held-out ones. None where nothing fails there."""
    analyzer: StaticAnalyzer
    groups: Mapping[TaskTestGroup, TestCounts] = field(default_factory=dict)
    """By group, over the feature's tests, where the task tells groups apart."""

    @functools.cached_property
    def sources(self) -> SourceTree:
        return own_sources(self.submission.loaded_task.task, self.submission.sources)

    @functools.cached_property
    def start(self) -> SourceTree:
        return own_sources(self.submission.loaded_task.task, self.submission.loaded_task.start)

    @functools.cached_property
    def reference(self) -> SourceTree | None:
        subject = self.submission.loaded_task
        return None if subject.reference is None else own_sources(subject.task, subject.reference)

    @functools.cached_property
    def change(self) -> TreeChange:
        """What the attempt did to the sources."""
        return compare_trees(self.start, self.sources)

    @functools.cached_property
    def reference_change(self) -> TreeChange | None:
        """What the reference does to them."""
        return None if self.reference is None else compare_trees(self.start, self.reference)

    @functools.cached_property
    def task_lines(self) -> int:
        """How large the task is, in lines of code: what findings are measured against.

        The reference says so where there is one; an attempt cannot make its mistakes look few by writing more.
        """
        return self.change.lines_written if self.reference_change is None else self.reference_change.lines_written

    @functools.cached_property
    def nothing_written(self) -> bool:
        """No line of code was touched, although the task asks for some."""
        return self.change.size == 0 and (self.reference_change is None or self.reference_change.size > 0)

    @property
    def trusted(self) -> SourceTree:
        """The sources that the task itself stands for: the reference, else the starting tree."""
        return self.start if self.reference is None else self.reference

    @functools.cached_property
    def progress(self) -> float:
        """The share of the task that is done: of the feature's tests that pass, or, where the task is about structure
        alone and no test fails at the start, of the broken rules that hold now.

        Of visible and held-out tests it is the harmonic mean: about the average where both go alike, as they do for an
        honest part, and nothing where only the tests that could be read pass, as they do for a table of their answers.
        """
        if self.feature.expected:
            return _balanced(self.feature)
        task = self.submission.loaded_task.task
        broken = len(new_violations(task, self.start, self.trusted) or ())
        if broken:
            return max(0.0, 1 - len(new_violations(task, self.sources, self.trusted) or ()) / broken)
        return self.counts.passed / self.counts.expected if self.counts.expected else 0.0

    @property
    def unbroken_share(self) -> float:
        """The share of what worked at the start that still does."""
        expected = self.counts.expected - self.feature.expected
        return (self.counts.passed - self.feature.passed) / expected if expected else 1.0

    def check(self, name: str, score: float, detail: str) -> Check:
        """A layer's answer, worth as much as what works."""
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


def _balanced(counts: TestCounts) -> float:
    visible = counts.expected - counts.held_out_expected
    if not visible or not counts.held_out_expected:
        return counts.passed / counts.expected
    seen = (counts.passed - counts.held_out_passed) / visible
    unseen = counts.held_out_passed / counts.held_out_expected
    return 2 * seen * unseen / (seen + unseen) if seen and unseen else 0.0
