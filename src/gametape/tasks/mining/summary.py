"""How a run of the miner went: what became of its candidates, and what they took."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from gametape.tasks.mining.suite_analysis import SuiteAnalysis
from gametape.tasks.project import Project


@dataclass
class MiningSummary:
    """Earlier parts of a resumed run are in it."""

    project: str
    suite: dict[str, Any]
    records: list[dict[str, Any]] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)
    """Single features that were tried for unions only."""
    seconds: float = 0.0
    trial_seconds: float = 0.0
    """Of these, what trying candidates took by the clock, and how many were tried in that time."""
    candidates_tried: int = 0

    @classmethod
    def of_project(cls, project: Project, analysis: SuiteAnalysis) -> Self:
        """Of a run that has tried nothing yet."""
        baseline = analysis.baseline
        suite = {
            "tests": len(baseline.tests),
            "flaky": baseline.flaky,
            "set_aside": {reason: len(ids) for reason, ids in baseline.set_aside.items()},
            "seconds": round(sum(baseline.seconds.values()), 2),
        }
        return cls(f"{project.name} {project.version}".strip(), suite)

    @property
    def valid(self) -> list[dict[str, Any]]:
        return [record for record in self.records if "task" in record]

    @property
    def seconds_per_candidate(self) -> float | None:
        """By the clock, with all jobs at work; None when nothing was tried."""
        return round(self.trial_seconds / self.candidates_tried, 3) if self.candidates_tried else None

    @property
    def rejected(self) -> dict[str, int]:
        return count_rejections(self.records)


def count_rejections(records: Iterable[dict[str, Any]]) -> dict[str, int]:
    return dict(Counter(record["reason"] for record in records if "reason" in record).most_common())
