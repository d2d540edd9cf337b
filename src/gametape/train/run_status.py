"""A run as a person wants to see it: figures of its last update, and what the time since the one before went into."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gametape.train.activity import ActivityClock, ActivityLedger, ActivityTimes
from gametape.train.progress import TrainingProgress
from gametape.train.prompts import Curriculum
from gametape.train.sources import PolicySource
from gametape.train.update_log import UpdateSummary


@dataclass(frozen=True)
class RunStatus:
    """A run as a person wants to see it after each update."""

    update: int
    episodes: int
    reward: float
    pass_rates: Mapping[str, float]
    """By bucket, over the latest rollouts of each that was drawn."""
    success: float | None
    """Of the last evaluation."""
    tokens_per_second: float
    """Sampled since the last update, evaluation included."""
    time: Mapping[str, float]
    """Shares of the clock since the last update."""
    in_flight: int
    staleness: float
    """The mean age, in versions, of what the update learned from."""
    eta_seconds: float | None


class StatusReporter:
    """Closes a window of the run's clock with each update. `sampled_tokens` counts those of the window."""

    def __init__(
        self, clock: ActivityClock, source: PolicySource, curriculum: Curriculum, buckets: Sequence[str]
    ) -> None:
        self._clock, self._source, self._curriculum, self._buckets = clock, source, curriculum, buckets
        self._ledger = ActivityLedger(clock.now())
        self.sampled_tokens = 0

    def report(self, progress: TrainingProgress, summary: UpdateSummary, spent: float, seconds: float) -> RunStatus:
        """The run after an update, when this share of its budget is spent, after so many seconds."""
        window = self._close_window()
        progress.activity.add(window)
        sampled, self.sampled_tokens = self.sampled_tokens, 0
        return RunStatus(
            update=progress.version,
            episodes=progress.episodes,
            reward=summary.reward,
            pass_rates={self._buckets[at]: rate for at, rate in self._curriculum.pass_rates.items()},
            success=progress.scores[-1]["success"] if progress.scores else None,
            tokens_per_second=round(sampled / window.wall, 1) if window.wall else 0.0,
            time=window.shares,
            in_flight=self._source.in_flight,
            staleness=summary.staleness,
            eta_seconds=round(max(0.0, seconds * (1 - spent) / spent), 1) if spent else None,
        )

    def _close_window(self) -> ActivityTimes:
        """What went on since the last time. Of another process it is known up to its last report."""
        own = self._clock.take()
        reports = self._source.take_activity()
        for report in (own, *reports):
            self._ledger.add(report)
        return self._ledger.close_window(reports[-1].until if reports else own.until)
