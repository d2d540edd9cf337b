"""The result of a watch, small enough to print for any log: episodes of alarms, and the evidence over time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gametape.record.errors import printable_path
from gametape.watch.log_reader import LoggedStep
from gametape.watch.monitor_set import BehaviourAlarm, MonitorSet
from gametape.watch.repeated_calls import IN_A_ROW, REPEATED, RepeatedSteps
from gametape.watch.text_features import printable

_ONE_EPISODE = 500
"""Alarms of one monitor that are at most so many steps apart are one episode."""
_MOST_EPISODES = 1000
_COLUMNS = 60
_LEVELS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class AlarmEpisode:
    """Consecutive alarms of a monitor: the first of them, its file and step, and until when they continued."""

    alarm: BehaviourAlarm
    file: Path
    step: int
    until: int
    last_seen: int
    times: int = 1

    @property
    def headline(self) -> str:
        return f"{printable_path(self.file)}: step {self.step}: {self.alarm.monitor}"

    @property
    def details(self) -> list[str]:
        """The evidence, one line each, without control characters."""
        lines = []
        for key, value in self.alarm.evidence.items():
            values = value if isinstance(value, list) else [value]
            lines += [f"{key}: {printable(str(item))}" for item in values]
        return lines

    def to_dict(self) -> dict[str, Any]:
        alarm = self.alarm
        return {
            "monitor": alarm.monitor,
            "file": str(self.file.absolute()),
            "step": self.step,
            "seen": alarm.step,
            "statistic": alarm.statistic,
            "threshold": alarm.threshold,
            "evidence": alarm.evidence,
            "until": self.until,
            "times": self.times,
        }


class WatchReport:
    """Observes every step with a `MonitorSet`, and with the rule about repeated calls, and collects the alarms."""

    def __init__(self, watch: MonitorSet) -> None:
        self._watch = watch
        self._repeated = RepeatedSteps()
        self.steps = 0
        self.episodes: list[AlarmEpisode] = []
        self.left_off = 0
        self._latest: dict[str, int] = {}
        self.sparklines: dict[str, Sparkline] = {}

    def observe(self, logged: LoggedStep) -> list[AlarmEpisode]:
        """Observe one step. Returns the episodes that begin with it."""
        self.steps += 1
        if logged.observed is None:
            return []
        alarms = self._watch.update(logged.observed)
        peaks = {alarm.monitor: alarm.statistic for alarm in alarms}
        for channel in self._watch.channels:
            name = channel.spec.name
            self.sparklines.setdefault(name, Sparkline()).add(max(channel.value, peaks.get(name, 0.0)))
        if repeated := self._repeated.update(logged.observed):
            times, most = float(repeated["times"]), float(IN_A_ROW)
            alarms = [*alarms, BehaviourAlarm(REPEATED, self._watch.steps, times, most, repeated)]
        return [new for alarm in alarms if (new := self._note(alarm, logged)) is not None]

    def _note(self, alarm: BehaviourAlarm, logged: LoggedStep) -> AlarmEpisode | None:
        at = self._latest.get(alarm.monitor)
        if at is not None and alarm.step - self.episodes[at].last_seen <= _ONE_EPISODE:
            episode = self.episodes[at]
            again = replace(episode, until=logged.step, last_seen=alarm.step, times=episode.times + 1)
            self.episodes[at] = again
            return None
        if len(self.episodes) >= _MOST_EPISODES:
            self.left_off += 1
            return None
        new = AlarmEpisode(alarm, logged.file, logged.step, logged.step, alarm.step)
        self._latest[alarm.monitor] = len(self.episodes)
        self.episodes.append(new)
        return new

    def to_dict(self) -> dict[str, Any]:
        """The JSON output of `gametape watch`."""
        return {
            "steps": self.steps,
            "monitors": [
                {
                    "name": channel.spec.name,
                    "tolerated": channel.tolerated,
                    "threshold": self._watch.threshold,
                    "rate": channel.rate,
                    "blind": channel.saturated,
                }
                for channel in self._watch.channels
            ],
            "alarms": [episode.to_dict() for episode in self.episodes],
            "left_off": self.left_off,
            "model_changes": [
                {"seen": change.step, "before": change.before, "after": change.after} for change in self._watch.changes
            ],
        }


class Sparkline:
    """A statistic over time, in at most twice as many buckets as there are columns. Each keeps its largest value."""

    def __init__(self) -> None:
        self._buckets: list[float] = []
        self._width = 1
        self._filled = 0

    def add(self, value: float) -> None:
        if self._filled == 0:
            if len(self._buckets) == 2 * _COLUMNS:
                pairs = zip(self._buckets[::2], self._buckets[1::2], strict=True)
                self._buckets = [max(pair) for pair in pairs]
                self._width *= 2
            self._buckets.append(value)
        else:
            self._buckets[-1] = max(self._buckets[-1], value)
        self._filled = (self._filled + 1) % self._width

    def line(self, threshold: float) -> str:
        """One character per bucket: how near the evidence came to the threshold, on a logarithmic scale."""
        top = math.log1p(threshold)
        shown = _halved(self._buckets) if len(self._buckets) > _COLUMNS else self._buckets
        last = len(_LEVELS) - 1
        return "".join(
            "!" if value >= threshold else _LEVELS[min(last - 1, int(last * math.log1p(value) / top))]
            for value in shown
        )


def _halved(buckets: Sequence[float]) -> list[float]:
    return [max(buckets[at : at + 2]) for at in range(0, len(buckets), 2)]


def plot_sparklines(sparklines: Mapping[str, Sparkline], threshold: float) -> list[str]:
    """A line for each monitor with evidence."""
    width = max((len(name) for name in sparklines), default=0)
    lines = [(name, sparkline.line(threshold)) for name, sparkline in sparklines.items()]
    return [f"{name:<{width}}  {line}" for name, line in lines if line.strip()]
