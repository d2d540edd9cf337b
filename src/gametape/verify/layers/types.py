"""Layer `types`: type errors that neither the starting tree nor the reference has.

Comments and files that suppress errors are removed before the check; a suppression that hid no error is a finding
itself (see `static_analysis.suppressions`).
"""

from gametape.core.verdict import Check
from gametape.verify.layers import new_findings
from gametape.verify.layers.context import ScoringContext

NAME = "types"


def score(context: ScoringContext) -> Check | None:
    if context.nothing_written:
        return context.check(NAME, 0.0, "")
    known = context.analyzer.baseline(context.submission.loaded_task).types
    if known is None:
        return None  # the task's own trees cannot be checked
    report = context.analyzer.type_report(context.submission.loaded_task, context.sources)
    if report.error:
        return context.check(NAME, 0.0, report.error)
    fresh = new_findings.select_new(report.findings, known)
    detail = (
        f"{len(fresh)} new type errors: {new_findings.summarize([str(finding) for finding in fresh])}"
        if fresh
        else "none is new"
    )
    return context.check(NAME, new_findings.finding_score(len(fresh), context.task_lines), detail)
