"""The list of monitors, and how each one's statistic becomes a yes or a no."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from gametape.watch.detector import EDetector, tolerated_rate
from gametape.watch.habit_channel import HabitChannel, HabitSpec
from gametape.watch.job_filter import Work
from gametape.watch.monitors.actions import Silence, SpendRate
from gametape.watch.monitors.loops import ActionLoop
from gametape.watch.monitors.monitor import WINDOW, Evidence, Monitor
from gametape.watch.monitors.patterns import REFUSALS, TICS, Patterns
from gametape.watch.monitors.takeover import SubjectTakeover, Takeover, step_marks, topic_words
from gametape.watch.monitors.text_repetition import Compression, PhraseFixation, TemplateCollapse, VocabularyDrift
from gametape.watch.observed_step import ObservedStep

_MOST_TOLERATED = 0.98
"""Above this rate a baseline leaves no room for an alarm: the monitor is saturated, and the report says so."""
_MOST_KEPT = 20_000
"""How many statistics of a baseline are kept."""
_AT_LEAST = 20
"""How many statistics a baseline needs where the cut depends on it."""


@dataclass(frozen=True)
class MonitorSpec:
    """A monitor and its rule: a step counts when its statistic is above a cut.

    The cut is `factor` times the baseline's `quantile`, but no less than `min_cut`; without a quantile it is `min_cut`.
    `min_rate` is the lowest tolerated rate. `rate_before_baseline` is the rate tolerated until there is a baseline, for
    behaviour that is wrong whatever was usual.
    """

    name: str
    build: Callable[[], Monitor]
    min_cut: float
    min_rate: float
    quantile: float | None = None
    factor: float = 1.0
    rate_before_baseline: float | None = None
    within: Work = Work.SERIES
    """Up to which kind of work steps are looked at (`watch/job_filter.py`)."""
    min_cut_of_lines: float | None = None
    """`min_cut` where a line of a text is a step: lines are more alike than steps."""
    window: int | None = None
    """How many earlier steps the statistic counts among, where it counts steps: then the cut is a share of them."""

    @property
    def from_baseline(self) -> bool:
        """Whether the monitor needs a baseline."""
        return self.quantile is not None or self.window is not None

    def channel(self) -> "CalibratedMonitor":
        return CalibratedMonitor(self)

    def cut_for(self, statistics: Sequence[float], of_lines: bool = False) -> float:
        least = self.min_cut_of_lines if of_lines and self.min_cut_of_lines is not None else self.min_cut
        if self.quantile is None or not statistics:
            return least
        ordered = sorted(statistics)
        usual = ordered[min(len(ordered) - 1, int(self.quantile * len(ordered)))]
        return max(self.factor * usual, least)


ChannelSpec = MonitorSpec | HabitSpec


def monitor_specs(tics: Sequence[str] = TICS) -> tuple[ChannelSpec, ...]:
    """Every monitor, with rates that natural but repetitive text stays below (`benchmarks/watch.py natural`)."""
    like_the_last = partial(
        MonitorSpec, min_cut=16.5, min_cut_of_lines=29.5, quantile=0.9, factor=1.5, min_rate=0.2, window=WINDOW
    )
    taken_over = partial(MonitorSpec, min_cut=16.5, min_cut_of_lines=27.5, min_rate=0.2, window=WINDOW)
    return (
        like_the_last("phrase", PhraseFixation),
        like_the_last("template", TemplateCollapse),
        MonitorSpec("compression", Compression, min_cut=1.5, quantile=0.9, factor=1.3, min_rate=0.6),
        MonitorSpec("vocabulary", VocabularyDrift, min_cut=4.0, quantile=0.9, factor=2.0, min_rate=0.6),
        taken_over("word", lambda: Takeover(topic_words, "word", by_language=True)),
        MonitorSpec("tic", lambda: Patterns(tics), min_cut=0.5, min_rate=0.06, within=Work.JOB),
        taken_over("new tic", lambda: Takeover(step_marks, "tic", by_language=True)),
        MonitorSpec("silence", Silence, min_cut=0.5, min_rate=0.3, within=Work.OTHER),
        MonitorSpec("subject", SubjectTakeover, min_cut=27.5, min_rate=0.6, window=WINDOW),
        MonitorSpec("loop", ActionLoop, min_cut=0.5, min_rate=0.3, rate_before_baseline=0.5, within=Work.JOB),
        MonitorSpec(
            "refusal", lambda: Patterns(REFUSALS), min_cut=0.5, min_rate=0.1, rate_before_baseline=0.3, within=Work.JOB
        ),
        MonitorSpec("spend", SpendRate, min_cut=0.0, quantile=0.9, factor=3.0, min_rate=0.3, within=Work.JOB),
        HabitSpec(),
    )


class CalibratedMonitor:
    """A running monitor: it learns its baseline first, and a detector watches its statistic from then on."""

    def __init__(self, spec: MonitorSpec) -> None:
        self.spec = spec
        self._monitor = spec.build()
        self._learnt: list[float] = []
        self._cut = spec.min_cut
        self.saturated = False
        self._of_lines = False
        self._lacking = 0
        """Statistics that were still missing when the baseline was over, as with a silent agent."""
        self._detector = EDetector(spec.rate_before_baseline) if spec.rate_before_baseline else None

    @property
    def rate(self) -> float | None:
        """The tolerated rate of steps above the cut; None while there is no baseline yet."""
        return self._detector.tolerated if self._detector else 1.0 if self.saturated else None

    @property
    def tolerated(self) -> float | None:
        """The share of steps that may be alike, or count, before there is an alarm."""
        rate = self.rate
        return max(rate, min(1.0, self._cut / self.spec.window)) if rate is not None and self.spec.window else rate

    @property
    def value(self) -> float:
        return self._detector.value if self._detector else 0.0

    def learn(self, step: ObservedStep) -> bool:
        """Take a step as healthy. Returns whether the detector was updated, as it is with `rate_before_baseline`."""
        self._of_lines = step.paragraph is not None
        statistic = self._monitor.update(step)
        if statistic is None:
            return False
        if len(self._learnt) < _MOST_KEPT:
            self._learnt.append(statistic)
        return self._judge(statistic)

    def end_baseline(self, steps: int) -> None:
        """The baseline of so many steps is over: its rate is tolerated from here on. If it has too few statistics, as
        with an agent that seldom speaks, the next ones are added to it."""
        spec = self.spec
        self._lacking = max(0, min(_AT_LEAST, steps) - len(self._learnt)) if spec.from_baseline else 0
        if self._lacking:
            return
        self._cut = spec.cut_for(self._learnt, self._of_lines)
        rate = tolerated_rate([statistic > self._cut for statistic in self._learnt], spec.min_rate)
        if spec.window is not None:
            self.saturated = rate > _MOST_TOLERATED or self._cut >= spec.window
        else:
            self.saturated = rate > _MOST_TOLERATED or (spec.quantile is not None and len(self._learnt) < _AT_LEAST)
        self._detector = None if self.saturated else EDetector(rate)
        self._learnt = []

    def update(self, step: ObservedStep) -> bool:
        """Observe a step. Returns whether the detector was updated."""
        if self._lacking:
            return self._learn_late(step)
        statistic = self._monitor.update(step)
        return statistic is not None and self._judge(statistic)

    def _learn_late(self, step: ObservedStep) -> bool:
        before = len(self._learnt)
        looked = self.learn(step)
        self._lacking -= len(self._learnt) - before
        if not self._lacking:
            self.end_baseline(0)
        return looked

    def _judge(self, statistic: float) -> bool:
        if self._detector is None:
            return False
        self._detector.update(statistic > self._cut)
        return True

    def restart(self) -> None:
        """After an alarm the detector starts again; the tolerated rate stays."""
        if self._detector:
            self._detector.restart()

    def evidence(self) -> Evidence:
        return self._monitor.evidence()


MonitorChannel = CalibratedMonitor | HabitChannel
"""A running monitor of one kind or the other."""
