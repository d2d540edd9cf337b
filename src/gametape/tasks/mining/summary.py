"""The summary of a mining run: what happened to its candidates, and the time it took."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from gametape.tasks.mining.suite_analysis import SuiteAnalysis
from gametape.tasks.project import Project


@dataclass
class MiningSummary:
    """Counts the whole run, including what it did before it was resumed."""

    project: str
    suite: dict[str, Any]
    records: list[dict[str, Any]] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)
    """Records of single features that were tried for unions and chains."""
    seconds: float = 0.0
    trial_seconds: float = 0.0
    """Wall-clock seconds of these in which candidates were tried; `candidates_tried` counts them."""
    candidates_tried: int = 0

    @classmethod
    def of_project(cls, project: Project, analysis: SuiteAnalysis) -> Self:
        """The summary of a run that has tried nothing yet."""
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
    def modes(self) -> dict[str, int]:
        """How many tasks are verified in each mode."""
        counts = Counter(record.get("mode", "shared") for record in self.valid)
        return {mode: counts[mode] for mode in ("replay", "split", "shared")}

    @property
    def not_replayable(self) -> dict[str, int]:
        """Tasks that do not rest on replay, by the commonest reason among their tests."""
        reasons = (
            next(iter(record.get("not_replayable", {"unknown": 1})))
            for record in self.valid
            if record.get("mode") != "replay"
        )
        return dict(Counter(reasons).most_common())

    @property
    def seconds_per_candidate(self) -> float | None:
        """Wall-clock seconds, with all jobs running; None when nothing was tried."""
        return round(self.trial_seconds / self.candidates_tried, 3) if self.candidates_tried else None

    @property
    def rejected(self) -> dict[str, int]:
        return count_rejections(self.records)


def count_rejections(records: Iterable[dict[str, Any]]) -> dict[str, int]:
    return dict(Counter(record["reason"] for record in records if "reason" in record).most_common())
