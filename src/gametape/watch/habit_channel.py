"""One detector for the rates of all habits: what has become common that was not, or is lost that was.

Each habit, and each loss of one, has an e-detector of its own; their mean is an e-detector again, so all of them count
as one monitor in the promise. A habit that is rare costs next to nothing: between two times that it is there, its
evidence falls as a closed form says.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.watch.detector import ALTERNATIVES, BURST_LENGTH, upper_bound
from gametape.watch.job_filter import Work
from gametape.watch.monitors.habits import HABITS, WINDOW, Habit, HabitMeasures
from gametape.watch.monitors.monitor import Evidence, Examples
from gametape.watch.observed_step import ObservedStep

_MOST_TOLERATED = 0.93
_MOST_KEPT = 20_000
_AT_LEAST = 20
"""How many values a habit's baseline needs."""
_DOUBT = 0.01
_LOST = "no "


@dataclass(frozen=True)
class HabitSpec:
    """The monitor of habits among the others."""

    name: str = "habit"
    habits: Sequence[Habit] = HABITS
    within: Work = Work.SERIES

    def channel(self) -> "HabitChannel":
        return HabitChannel(self)


class RareDetector:
    """An e-detector that is only told when its outcome is a yes, and how many noes came before it.

    `eligible` also asks for `needed` of them among the last steps.
    """

    __slots__ = ("_at", "_lately", "_no", "_statistics", "_yes", "tolerated", "value")

    def __init__(self, tolerated: float, needed: int, at: int) -> None:
        self.tolerated = tolerated
        rates = [tolerated + share * (1 - tolerated) for share in ALTERNATIVES]
        self._yes = [rate / tolerated for rate in rates]
        self._no = [(1 - rate) / (1 - tolerated) for rate in rates]
        self._statistics = [0.0] * len(rates)
        self._at = at
        self._lately: deque[int] = deque(maxlen=needed)
        self.value = 0.0

    def yes_at(self, at: int) -> None:
        """A yes at this outcome, counted from 1 on; all since the last one were noes."""
        noes = at - self._at - 1
        self._at = at
        self._lately.append(at)
        before = self._statistics
        if noes:
            shrunk = [no**noes for no in self._no]
            before = [
                part * statistic + no * (1 - part) / (1 - no)
                for part, no, statistic in zip(shrunk, self._no, before, strict=True)
            ]
        updated = [yes * (statistic + 1.0) for yes, statistic in zip(self._yes, before, strict=True)]
        self._statistics = updated
        self.value = sum(updated) / len(updated)

    def eligible(self, at: int) -> bool:
        return len(self._lately) == self._lately.maxlen and at - self._lately[0] < WINDOW

    def restart(self) -> None:
        self._statistics = [0.0] * len(self._statistics)
        self.value = 0.0
        self._lately.clear()


class _Followed:
    """A habit with its baseline, then with its detector."""

    def __init__(self, habit: Habit, lost: bool) -> None:
        self.habit = habit
        self.name = (_LOST if lost else "") + habit.name
        self._lost = lost
        self.learnt: list[float] = []
        self._cut = 0.5
        self.usual = 0.0
        self.detector: RareDetector | None = None
        self.examples = Examples()

    def counts(self, value: float) -> bool:
        if self.habit.below is not None:
            return value <= self._cut
        return (value > self._cut) != self._lost

    def settle(self, at: int) -> None:
        habit, values = self.habit, self.learnt
        if habit.grows:
            values = values[len(values) // 2 :]
        self.learnt = []
        if len(values) < _AT_LEAST:
            return
        ordered = sorted(values)
        if habit.above is not None:
            self._cut = max(habit.above * ordered[int(0.95 * len(ordered))], habit.no_less)
        elif habit.below is not None:
            self._cut = min(habit.below * ordered[int(0.05 * len(ordered))], habit.no_more)
            if habit.no_more >= 1:
                self._cut = habit.no_more if ordered[int(0.05 * len(ordered))] > habit.no_more else self._cut
        outcomes = [self.counts(value) for value in values]
        self.usual = sum(outcomes) / len(outcomes)
        least = habit.falls if self._lost and habit.falls is not None else habit.least
        tolerated = max(least, _usual_rate(outcomes)) if any(outcomes) or not habit.rare else least
        if tolerated <= _MOST_TOLERATED:
            self.detector = RareDetector(tolerated, max(habit.needed, int(tolerated * WINDOW) + 1), at)


def _usual_rate(outcomes: Sequence[bool]) -> float:
    """The rate of the busiest stretch of a baseline, or an upper bound of all of it."""
    length = min(BURST_LENGTH, len(outcomes))
    inside = busiest = sum(outcomes[:length])
    for entering, leaving in zip(outcomes[length:], outcomes, strict=False):
        inside += entering - leaving
        busiest = max(busiest, inside)
    burst = busiest / length if length == BURST_LENGTH else 0.0
    return max(burst, upper_bound(sum(outcomes), len(outcomes), _DOUBT))


class HabitChannel:
    """All habits of one model, as a running monitor."""

    def __init__(self, spec: HabitSpec) -> None:
        self.spec = spec
        self._measures = HabitMeasures()
        self._followed = [_Followed(habit, lost=False) for habit in spec.habits]
        self._followed += [_Followed(habit, lost=True) for habit in spec.habits if habit.falls is not None]
        self._outcomes: dict[str, int] = {}
        self._settled = False
        self._lacking: list[_Followed] = []
        self._loudest = self._followed[0]
        self.value = 0.0

    @property
    def saturated(self) -> bool:
        return self._settled and not self._lacking and not any(each.detector for each in self._followed)

    @property
    def rate(self) -> float | None:
        rates = [each.detector.tolerated for each in self._followed if each.detector]
        return min(rates) if rates else 1.0 if self.saturated else None

    @property
    def tolerated(self) -> float | None:
        return self.rate

    def learn(self, step: ObservedStep) -> bool:
        found = self._measures.of(step)
        self._keep(found, self._followed)
        return False

    @staticmethod
    def _keep(found: dict[str, float], followed: Sequence[_Followed]) -> None:
        for each in followed:
            value = found.get(each.habit.name)
            if value is not None and len(each.learnt) < _MOST_KEPT:
                each.learnt.append(value)

    def end_baseline(self, steps: int) -> None:
        del steps
        self._settled = self._measures.frozen = True
        for each in self._followed:
            if len(each.learnt) < (2 if each.habit.grows else 1) * _AT_LEAST:
                self._lacking.append(each)
            else:
                each.settle(self._outcomes.get(each.habit.name, 0))

    def update(self, step: ObservedStep) -> bool:
        found = self._measures.of(step)
        if self._lacking:
            self._learn_late(found)
        self.value = 0.0
        outcomes = self._outcomes
        for name in found:
            outcomes[name] = outcomes.get(name, 0) + 1
        loudest = 0.0
        for each in self._followed:
            detector, value = each.detector, found.get(each.habit.name)
            if detector is None or value is None or not each.counts(value):
                continue
            at = outcomes[each.habit.name]
            detector.yes_at(at)
            if detector.eligible(at):
                self.value += detector.value
                if detector.value > loudest:
                    loudest, self._loudest = detector.value, each
                    each.examples.add(step.text or " ".join(action.arguments for action in step.actions))
        self.value /= len(self._followed)
        return True

    def _learn_late(self, found: dict[str, float]) -> None:
        """A habit with too little of a baseline learns on; languages are settled once there are texts to tell."""
        self._keep(found, self._lacking)
        for each in list(self._lacking):
            if len(each.learnt) >= (2 if each.habit.grows else 1) * _AT_LEAST:
                self._lacking.remove(each)
                each.settle(self._outcomes.get(each.habit.name, 0))

    def restart(self) -> None:
        for each in self._followed:
            if each.detector:
                each.detector.restart()
        self.value = 0.0

    def evidence(self) -> Evidence:
        loudest = self._loudest
        return {"habit": loudest.name, "usual": round(loudest.usual, 3), "examples": loudest.examples.texts}
