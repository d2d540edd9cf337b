"""Layer `architecture`: the structure that a task declares.

Import contracts, layers, forbidden modules and the public API, read from the syntax trees of the exported sources.
A violation that the reference has too (without one: the starting tree) does not count. No new violation scores 1.0, one
0.5, two a third.
"""

from gametape.core.verdict import Check
from gametape.verify.layers.context import ScoringContext
from gametape.verify.layers.new_findings import summarize
from gametape.verify.layers.structure import new_violations

NAME = "architecture"


def score(context: ScoringContext) -> Check | None:
    fresh = new_violations(context.submission.loaded_task.task, context.sources, context.trusted)
    if fresh is None:
        return None
    detail = (
        f"{len(fresh)} violations: {summarize([str(violation) for violation in fresh])}"
        if fresh
        else "everything holds"
    )
    return context.check(NAME, 1 / (1 + len(fresh)), detail)
