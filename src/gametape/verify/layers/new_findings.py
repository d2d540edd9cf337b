"""Findings that a submission adds to those of the task's own trees, and what they cost."""

from collections import Counter
from collections.abc import Sequence

from gametape.verify.static_analysis.findings import FindingKey, ToolFinding

LINES_PER_FINDING = 20
"""One finding in this many lines halves the score."""

_MOST_LISTED = 5


def select_new(findings: Sequence[ToolFinding], known: Counter[FindingKey]) -> list[ToolFinding]:
    """Findings beyond the known ones, counted by file, code and message, so that a moved line adds none."""
    left = known.copy()
    fresh = []
    for finding in findings:
        if left[finding.key] > 0:
            left[finding.key] -= 1
        else:
            fresh.append(finding)
    return fresh


def finding_score(findings: float, lines: int) -> float:
    """1.0 for no findings; falls towards 0 with their number relative to the lines of the task."""
    return 1 / (1 + findings * LINES_PER_FINDING / max(lines, LINES_PER_FINDING))


def summarize(texts: Sequence[str], most: int = _MOST_LISTED) -> str:
    """The first few, and how many more."""
    rest = f"; and {len(texts) - most} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + rest
