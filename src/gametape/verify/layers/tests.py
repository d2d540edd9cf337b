"""Layer `tests`: the share of the feature's tests that passed, times the share of the others that still pass.

The feature's tests are those that the starting tree fails; visible and held-out ones are combined by the harmonic mean
(see `context`). In a task from a real repository the starting tree passes most tests: they earn nothing, but breaking
them costs. Skipped, missing and timed-out tests have not passed. Where a task has groups of tests, each group is also a
layer of its own (`tests.unit`, `tests.integration`, `tests.behavioural`), so that many unit tests cannot outvote a few
behavioural ones; see `reward.GROUPS`.
"""

from gametape.core.task import TaskTestGroup
from gametape.core.verdict import Check, TestCounts
from gametape.verify.layers.context import ScoringContext

NAME = "tests"


def score(context: ScoringContext) -> Check | None:
    return Check(name=NAME, score=context.progress * context.unbroken_share, detail=_detail(context.counts))


def unit(context: ScoringContext) -> Check | None:
    return _group(context, "unit")


def integration(context: ScoringContext) -> Check | None:
    return _group(context, "integration")


def behavioural(context: ScoringContext) -> Check | None:
    return _group(context, "behavioural")


def _group(context: ScoringContext, group: TaskTestGroup) -> Check | None:
    counts = context.groups.get(group)
    if not counts or not counts.expected:
        return None
    share = counts.passed / counts.expected * context.unbroken_share
    return Check(name=f"{NAME}.{group}", score=share, detail=_detail(counts))


def _detail(counts: TestCounts) -> str:
    detail = f"{counts.passed} of {counts.expected} tests passed"
    if counts.held_out_expected:
        detail += f", {counts.held_out_passed} of {counts.held_out_expected} held-out ones among them"
    others = {"failed": counts.failed, "missing": counts.missing}
    others |= {"skipped": counts.skipped, "timed out": counts.timed_out}
    if counts.passed < counts.expected and any(others.values()):
        detail += ": " + ", ".join(f"{number} {what}" for what, number in others.items() if number)
    return detail
