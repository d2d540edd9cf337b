"""Layer `types`: type errors that neither the starting tree nor the reference has.

Hiding an error is as bad as having it: comments and files that silence the checker are taken away before it looks,
and where one hid nothing it counts itself (see the toolbox).
"""

from gametape.core.verdict import Check
from gametape.verify.layers import novelty
from gametape.verify.layers.case import Case

NAME = "types"


def score(case: Case) -> Check | None:
    if case.nothing_written:
        return case.check(NAME, 0.0, "")
    known = case.toolbox.baseline(case.attempt.subject).types
    if known is None:
        return None  # the reference itself cannot be checked
    report = case.toolbox.types(case.attempt.subject, case.sources)
    if report.trouble:
        return case.check(NAME, 0.0, report.trouble)
    fresh = novelty.new(report.findings, known)
    detail = f"{len(fresh)} new type errors: {novelty.listed([str(one) for one in fresh])}" if fresh else "none is new"
    return case.check(NAME, novelty.falling(len(fresh), case.size), detail)
