"""Layer `tests`: the progress of the feature, times the share of the other tests that still pass.

Progress is made of the tests that the starting tree fails and of fresh calls (see `verify.progress`). In a task from a
real repository the starting tree passes most tests: they earn nothing, but breaking them costs. Skipped, missing and
timed-out tests have not passed. Where a task has groups of tests, each group is also a layer of its own (`tests.unit`,
`tests.integration`, `tests.behavioural`), so that many unit tests cannot outvote a few behavioural ones; see
`reward.GROUPS`.
"""

from gametape.core.task import TaskTestGroup
from gametape.core.verdict import Check, TestCounts
from gametape.verify.layers.context import ScoringContext

NAME = "tests"


def score(context: ScoringContext) -> Check | None:
    detail = _detail(context.counts)
    if context.fresh:
        detail += f"; {context.fresh.agreed} of {context.fresh.calls} fresh calls agreed"
    if context.feature.expected and context.progress < 1:
        detail += f"; progress {context.progress:.2f}: {context.progress_counts.describe(context.floor.progress)}"
    if context.unbroken_share < 1:
        detail += f"; times {context.unbroken_share:.2f} of the tests that passed at the start"
    return Check(name=NAME, score=context.tests_score, detail=detail)


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
    score = context.progress_of_group(group) * context.unbroken_share
    return Check(name=f"{NAME}.{group}", score=score, detail=_detail(counts))


def _detail(counts: TestCounts) -> str:
    detail = f"{counts.passed} of {counts.expected} tests passed"
    if counts.held_out_expected:
        detail += f", {counts.held_out_passed} of {counts.held_out_expected} held-out ones among them"
    others = {"failed": counts.failed, "missing": counts.missing}
    others |= {"skipped": counts.skipped, "timed out": counts.timed_out}
    if counts.passed < counts.expected and any(others.values()):
        detail += ": " + ", ".join(f"{number} {what}" for what, number in others.items() if number)
    return detail
