"""Layer `architecture`: what a task says must hold of the structure, whatever the tests say.

Import contracts, layers, forbidden modules and the public API, read from the syntax trees of the exported sources.
What the reference itself breaks (without one: the starting tree) is held against nobody. Each new violation counts:
none is 1.0, one 0.5, two a third.
"""

from gametape.core.verdict import Check
from gametape.verify.layers.case import Case
from gametape.verify.layers.novelty import listed
from gametape.verify.layers.structure import fresh_violations

NAME = "architecture"


def score(case: Case) -> Check | None:
    fresh = fresh_violations(case.attempt.subject.task, case.sources, case.trusted)
    if fresh is None:
        return None
    detail = f"{len(fresh)} violations: {listed([str(one) for one in fresh])}" if fresh else "everything holds"
    return case.check(NAME, 1 / (1 + len(fresh)), detail)
