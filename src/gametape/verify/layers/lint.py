"""Layer `lint`: findings of the linter that neither the starting tree nor the reference has.

Comments and configuration that silence the linter are not read, so what they hide is found.
"""

from gametape.core.verdict import Check
from gametape.verify.layers import novelty
from gametape.verify.layers.case import Case

NAME = "lint"


def score(case: Case) -> Check | None:
    if case.nothing_written:
        return case.check(NAME, 0.0, "")
    known = case.toolbox.baseline(case.attempt.subject).lint
    if known is None:
        return None  # the reference itself cannot be checked
    report = case.toolbox.lint(case.attempt.subject, case.sources)
    if report.trouble:
        return case.check(NAME, 0.0, report.trouble)
    fresh = novelty.new(report.findings, known)
    detail = f"{len(fresh)} new findings: {novelty.listed([str(one) for one in fresh])}" if fresh else "none is new"
    return case.check(NAME, novelty.falling(len(fresh), case.size), detail)
