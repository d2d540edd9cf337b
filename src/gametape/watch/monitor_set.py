"""All monitors over one stream of steps: the baseline, the alarms, and a fresh start at a change of model."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gametape.watch.calibrated_monitor import ChannelSpec, MonitorChannel, monitor_specs
from gametape.watch.job_filter import JobFilter
from gametape.watch.monitors.monitor import Evidence
from gametape.watch.observed_step import ObservedStep

BASELINE = 200
STEPS_TO_FALSE_ALARM = 10_000
_MOST_MODELS = 8
_MOST_CHANGES = 1000


def baseline_length(steps: int) -> int:
    """How many first steps to learn from in a log of known length: a third of a short one."""
    return min(BASELINE, max(steps // 3, 1))


@dataclass(frozen=True)
class BehaviourAlarm:
    """A monitor's evidence has passed the threshold at this step, counted from 1 over all that was watched."""

    monitor: str
    step: int
    statistic: float
    threshold: float
    evidence: Evidence


@dataclass(frozen=True)
class ModelChange:
    """A new model began to write steps: its statistics are empty."""

    step: int
    before: str | None
    after: str | None


class MonitorSet:
    """Observes steps one by one. `update` returns the alarms of each.

    The first `baseline` steps of a model are taken as healthy; `learn` gives it a baseline from elsewhere, and with 0
    there is none: monitors that need one stay silent. The mean number of steps to a false alarm of any
    monitor is at least `steps_to_false_alarm`, as long as healthy steps stay below the tolerated rates.
    """

    def __init__(
        self,
        baseline: int = BASELINE,
        steps_to_false_alarm: int = STEPS_TO_FALSE_ALARM,
        monitors: Sequence[ChannelSpec] | None = None,
    ) -> None:
        self._specs = monitor_specs() if monitors is None else tuple(monitors)
        self._baseline = baseline
        self.threshold = float(steps_to_false_alarm * len(self._specs))
        self.steps = 0
        self.changes: deque[ModelChange] = deque(maxlen=_MOST_CHANGES)
        self._models: OrderedDict[str | None, _Model] = OrderedDict()
        self._given: _Model | None = None
        self._speaking: str | None = None

    def learn(self, steps: Iterable[ObservedStep]) -> None:
        """Take a baseline from elsewhere, for the first model in the stream."""
        given = _Model(self._specs)
        for step in steps:
            given.learn(step)
        given.settle()
        self._given = given

    def update(self, step: ObservedStep) -> list[BehaviourAlarm]:
        self.steps += 1
        model = self._model_of(step)
        if not model.settled:
            updated = model.learn(step)
            if model.learnt == self._baseline:
                model.settle()
        elif model.lists.looked_at(step):
            work = model.jobs.work_of(step)
            updated = [channel for channel in model.channels if work <= channel.spec.within and channel.update(step)]
        else:
            updated = []
        return [self._alarm(channel) for channel in updated if channel.value >= self.threshold]

    def _alarm(self, channel: MonitorChannel) -> BehaviourAlarm:
        alarm = BehaviourAlarm(channel.spec.name, self.steps, channel.value, self.threshold, channel.evidence())
        channel.restart()
        return alarm

    def _model_of(self, step: ObservedStep) -> "_Model":
        """The statistics of a step's model. A step without a model is the last one's."""
        name = step.model if step.model is not None else self._speaking
        if name not in self._models:
            if self._models:
                self.changes.append(ModelChange(self.steps, self._speaking, name))
            self._models[name] = (None if self._models else self._given) or _Model(self._specs)
            if self._baseline == 0:
                self._models[name].settle()
            if len(self._models) > _MOST_MODELS:
                self._models.popitem(last=False)
        self._models.move_to_end(name)
        self._speaking = name
        return self._models[name]

    @property
    def channels(self) -> Sequence[MonitorChannel]:
        """The monitors of the model of the last step, or of the one that will be first."""
        return self._speaker.channels

    @property
    def learning(self) -> bool:
        """Whether the baseline of the model of the last step is not over."""
        return not self._speaker.settled

    @property
    def _speaker(self) -> "_Model":
        return self._models.get(self._speaking) or self._given or _Model(self._specs)


class ListFilter:
    """Skips most items of long lists: a list of fifty changed files is one statement, not fifty.

    Where the baseline of a text has paragraphs, only the beginning of a long list in one is observed, and one line
    in sixty-four after that, so that an endless list is noticed too. Lines that are neither indented nor marked as
    items are always observed.
    """

    _FULL, _ONE_IN = 12, 64
    _PARAGRAPHS = 2
    _ITEM = (" ", "\t", "*", "-", "+", "•", "|")

    def __init__(self) -> None:
        self._paragraphs = 0
        self._now: int | None = None
        self._items = 0

    def learn(self, step: ObservedStep) -> None:
        self._paragraphs += step.paragraph is not None and step.paragraph != self._now
        self._now = step.paragraph

    def looked_at(self, step: ObservedStep) -> bool:
        if step.paragraph is None or self._paragraphs < self._PARAGRAPHS:
            return True
        if step.paragraph != self._now:
            self._now, self._items = step.paragraph, 0
        if not step.text.startswith(self._ITEM):
            return True
        self._items += 1
        return self._items <= self._FULL or self._items % self._ONE_IN == 0


class _Model:
    """The monitors of one model."""

    def __init__(self, monitors: Sequence[ChannelSpec]) -> None:
        self.channels = [kind.channel() for kind in monitors]
        self.learnt = 0
        self.settled = False
        self.lists = ListFilter()
        self.jobs = JobFilter()

    def learn(self, step: ObservedStep) -> list[MonitorChannel]:
        self.learnt += 1
        self.lists.learn(step)
        work = self.jobs.work_of(step)
        return [channel for channel in self.channels if work <= channel.spec.within and channel.learn(step)]

    def settle(self) -> None:
        for channel in self.channels:
            channel.end_baseline(self.learnt)
        self.settled = True
