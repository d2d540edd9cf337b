"""Layer `architecture`: what a task says must hold of the structure, whatever the tests say.

Import contracts, layers, forbidden modules and the public API, read from the syntax trees of the exported sources.
What the reference itself breaks (without one: the starting tree) is held against nobody. Each new violation counts:
none is 1.0, one 0.5, two a third.
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
    detail = f"{len(fresh)} violations: {summarize([str(one) for one in fresh])}" if fresh else "everything holds"
    return context.check(NAME, 1 / (1 + len(fresh)), detail)
