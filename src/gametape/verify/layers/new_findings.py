"""Findings that an attempt brought in, and what they cost."""

from collections import Counter
from collections.abc import Sequence

from gametape.verify.static_analysis.findings import FindingKey, ToolFinding

LINES_PER_FINDING = 20
"""One finding in so many lines halves a score."""

_SHOWN = 5


def select_new(found: Sequence[ToolFinding], known: Counter[FindingKey]) -> list[ToolFinding]:
    """Findings beyond those known, counted by file, code and message: a line that moved brings nothing in."""
    left = known.copy()
    fresh = []
    for finding in found:
        if left[finding.key] > 0:
            left[finding.key] -= 1
        else:
            fresh.append(finding)
    return fresh


def finding_score(findings: float, lines: int) -> float:
    """1.0 for no findings; falls smoothly, never quite to 0, with their number relative to the lines of the task."""
    return 1 / (1 + findings * LINES_PER_FINDING / max(lines, LINES_PER_FINDING))


def summarize(places: Sequence[str], most: int = _SHOWN) -> str:
    """The first few, and how many more."""
    rest = f"; and {len(places) - most} more" if len(places) > most else ""
    return "; ".join(places[:most]) + rest
