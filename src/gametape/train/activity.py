"""What a run spends its time on: when at least one thing of a kind is under way, as shares of the clock.

Kinds overlap: that is what a run without waits looks like. `prepare` is what is learned of each task once, before its
first verdict, which waits for it; `idle` is the time in which the policy's network neither
samples nor learns.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Literal

from gametape.agent.episode import EpisodeStages
from gametape.core.messages import GenerateRequest, Generation, Sampling, WeightUpdate
from gametape.core.protocols import PolicyEngine

Activity = Literal["decode", "tools", "prepare", "verify", "coach", "learn"]
ACTIVITIES: tuple[Activity, ...] = ("decode", "tools", "prepare", "verify", "coach", "learn")
Interval = tuple[float, float]

_GAP = 0.001
"""Seconds between two intervals that count as one."""


@dataclass(frozen=True)
class ActivityReport:
    """What went on up to `until`, by the machine's monotonic clock, which all its processes share."""

    until: float
    intervals: Mapping[Activity, Sequence[Interval]]
    in_flight: int = 0
    """Rollouts that were open at that time."""


class ActivityClock:
    """Notes when at least one activity of a kind is under way. Safe to use from many threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._lock = threading.Lock()
        self._active: Counter[Activity] = Counter()
        self._since: dict[Activity, float] = {}
        self._closed: defaultdict[Activity, list[Interval]] = defaultdict(list)

    def begin(self, kind: Activity) -> None:
        with self._lock:
            self._active[kind] += 1
            if self._active[kind] == 1:
                self._since[kind] = self.now()

    def end(self, kind: Activity) -> None:
        with self._lock:
            self._active[kind] -= 1
            if not self._active[kind]:
                self._close(kind, self.now())

    @contextmanager
    def during(self, kind: Activity) -> Iterator[None]:
        self.begin(kind)
        try:
            yield
        finally:
            self.end(kind)

    def take(self, in_flight: int = 0) -> ActivityReport:
        """Everything since the last time; what is still under way is cut in two here."""
        with self._lock:
            now = self.now()
            for kind in [kind for kind, count in self._active.items() if count]:
                self._close(kind, now)
                self._since[kind] = now
            taken, self._closed = self._closed, defaultdict(list)
        return ActivityReport(now, dict(taken), in_flight)

    def _close(self, kind: Activity, now: float) -> None:
        begun, closed = self._since[kind], self._closed[kind]
        if closed and begun - closed[-1][1] < _GAP:
            begun = closed.pop()[0]
        closed.append((begun, now))


@dataclass
class ActivityTimes:
    """Seconds by kind, out of `wall` seconds."""

    wall: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def shares(self) -> dict[str, float]:
        """By kind and for `idle`: the share of the clock."""
        names = (*ACTIVITIES, "idle")
        return {name: round(self.seconds.get(name, 0.0) / self.wall, 4) if self.wall else 0.0 for name in names}

    def add(self, other: "ActivityTimes") -> None:
        self.wall += other.wall
        for name, seconds in other.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds


class ActivityLedger:
    """Adds up the reports of all processes of a run, one window after the other."""

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._intervals: defaultdict[Activity, list[Interval]] = defaultdict(list)

    def add(self, report: ActivityReport) -> None:
        for kind, intervals in report.intervals.items():
            self._intervals[kind] += intervals

    def close_window(self, until: float) -> ActivityTimes:
        """The times from the last window's end to this one's. What reaches further counts for the next."""
        begun, self._begun = self._begun, max(until, self._begun)
        within = {kind: _clipped(self._intervals[kind], begun, until) for kind in ACTIVITIES}
        for kind in ACTIVITIES:
            self._intervals[kind] = _clipped(self._intervals[kind], self._begun, float("inf"))
        seconds: dict[str, float] = {kind: union_length(intervals) for kind, intervals in within.items()}
        wall = self._begun - begun
        seconds["idle"] = max(0.0, wall - union_length([*within["decode"], *within["learn"]]))
        return ActivityTimes(wall, seconds)


def union_length(intervals: Iterable[Interval]) -> float:
    """The length of what at least one of them covers."""
    total, end = 0.0, float("-inf")
    for begun, ended in sorted(intervals):
        total += max(0.0, ended - max(begun, end))
        end = max(end, ended)
    return total


def _clipped(intervals: Iterable[Interval], low: float, high: float) -> list[Interval]:
    cut = ((max(begun, low), min(ended, high)) for begun, ended in intervals)
    return [(begun, ended) for begun, ended in cut if begun < ended]


class EpisodePhases(EpisodeStages):
    """The parts of one episode on a clock: it is at its tools whenever it plays and does not wait for the model."""

    def __init__(self, clock: ActivityClock) -> None:
        self._clock = clock
        self._playing = False

    def opening(self) -> AbstractContextManager[None]:
        return self._clock.during("tools")

    def scoring(self) -> AbstractContextManager[None]:
        return self._clock.during("verify")

    @contextmanager
    def playing(self) -> Iterator[None]:
        self._playing = True
        try:
            with self._clock.during("tools"):
                yield
        finally:
            self._playing = False

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Outside of `playing`, such as in a summary of the coach, nothing is to be noted."""
        if not self._playing:
            yield
            return
        self._clock.end("tools")
        try:
            yield
        finally:
            self._clock.begin("tools")


@dataclass(frozen=True)
class PhasedEngine(PolicyEngine):
    """The engine of one episode, whose phases it tells when the model is asked."""

    engine: PolicyEngine
    phases: EpisodePhases

    async def generate(self, request: GenerateRequest) -> Generation:
        with self.phases.asking():
            return await self.engine.generate(request)

    async def score(
        self,
        ids: Sequence[int],
        start: int = 1,
        sampling: Sampling = Sampling(),  # noqa: B008 - frozen
    ) -> list[float] | None:
        return await self.engine.score(ids, start, sampling)

    async def update_weights(self, update: WeightUpdate) -> None:
        await self.engine.update_weights(update)

    async def policy_version(self) -> int:
        return await self.engine.policy_version()

    def participant(self) -> AbstractContextManager[None]:
        return self.engine.participant()
