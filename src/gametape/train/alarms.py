"""Alarms about what goes wrong while training before the reward shows it, with advice; and the monitors of the policy's
behaviour. An alarm stops no run by itself.

Each needs evidence: what is about a change of the policy waits for the first update with a gradient and for a second
look, and a rate waits until enough was counted. An alarm is told when it begins and when it is over.
"""

import json
import math
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from gametape.core.token_segments import TokenSegment
from gametape.record.atomic import write_all
from gametape.record.errors import write_error
from gametape.record.json_lines import read_lines
from gametape.train.alarm_advice import ArmTraits
from gametape.train.rollouts import DistillTarget, TurnText
from gametape.train.run_directory import truncate_file
from gametape.watch.breaker import BehaviourBreaker, BreakerTrip, Rung
from gametape.watch.monitor_set import MonitorSet
from gametape.watch.observed_step import ObservedStep, observed_step_from_record


class Share(NamedTuple):
    """So much of so many."""

    part: float = 0.0
    whole: int = 0

    @property
    def rate(self) -> float:
        return self.part / self.whole if self.whole else 0.0


_NOTHING = Share()


@dataclass(frozen=True)
class TrainingHealth:
    """What alarms are decided on after an update. None where it was not measured."""

    version: int = 0
    """Updates with a gradient before the rollouts that are looked at: 0 for those of the start."""
    entropy: float | None = None
    length: float | None = None
    kl_to_start: float | None = None
    mismatch: float | None = None
    forgotten: float | None = None
    """The points of its best evaluation's success that the policy would no longer have."""
    hacked: Share = _NOTHING
    """Rollouts in which cheating was proven."""
    lost: Share = _NOTHING
    """Rollouts with an infrastructure error."""
    lost_reason: str = ""
    """Of the last one of them."""
    without_signal: Share = _NOTHING
    """Groups from which nothing is learned."""
    flat_kind: str = ""
    """What most of these are: `all_fail` or `all_pass`."""
    hint_leaks: Share = _NOTHING
    """Sampled turns that repeat a hint."""
    teacher_gain: Share = _NOTHING
    """Nats by which hints lower the log-probability of what was done at their targets, over the targets."""
    saturated: bool = False


@dataclass(frozen=True)
class TrainingAlarm:
    name: str
    value: float
    limit: float
    advice: str


_QUIET = 20
"""After so many checks without it an alarm is over, and would be reported again."""
_LOOKS = 2
"""Checks in a row that find a change of the policy before it is reported: one batch is a few rollouts."""
_SPIKE = 0.5
"""Nats above the start's entropy that are not its own variation."""
_LEAST_COUNTED = {"lost": 16, "hack_rate": 16, "zero_variance": 8, "hint_leak": 200, "teacher": 16}
"""By alarm: what must have been counted over the last updates: rollouts, groups, turns, targets."""
_LEAST_FOUND = {"hack_rate": 2, "hint_leak": 2}
_HINTED_PROMPTS = 64


class AlarmMonitor:
    """Reports an alarm when it begins, not in every update that it lasts, and says when it is over."""

    def __init__(self, traits: ArmTraits) -> None:
        self._traits = traits
        self._limits = traits.config.alarms
        self.first_length: float | None = None
        self.first_entropy: float | None = None
        self.active: dict[str, int] = {}
        """By name: how many checks ago it was last found."""
        self._active_in_evaluation: set[str] = set()
        self._suspected: dict[str, int] = {}
        """By name: in how many checks up to the last one it was found."""
        self._counted: dict[str, deque[Share]] = {name: deque() for name in _LEAST_COUNTED}
        self._over: list[str] = []

    def check_health(self, health: TrainingHealth) -> list[TrainingAlarm]:
        """After an update."""
        if self.first_length is None:
            self.first_length = health.length
        if self.first_entropy is None:
            self.first_entropy = health.entropy
        self._over += [name for name, ago in self.active.items() if ago >= _QUIET]
        self.active = {name: ago + 1 for name, ago in self.active.items() if ago < _QUIET}
        changes = [*self._changes(health)] if health.version else []
        unmeasured = {"kl_to_start"} if health.kl_to_start is None else set()
        waiting = {name: looks for name, looks in self._suspected.items() if name in unmeasured}
        self._suspected = waiting | {alarm.name: self._suspected.get(alarm.name, 0) + 1 for alarm in changes}
        confirmed = [alarm for alarm in changes if self._suspected[alarm.name] >= _LOOKS]
        return self._news([*confirmed, *self._rates(health), *self._facts(health)])

    def filter_new(self, alarms: Iterable[TrainingAlarm]) -> list[TrainingAlarm]:
        """The alarms of other monitors that are not active already."""
        return self._news(alarms)

    def check_evaluation(self, score: Mapping[str, Any], first: Mapping[str, Any]) -> list[TrainingAlarm]:
        """After an evaluation, beside the first one: what training must not cost."""
        alarms = [*self._eroded(score, first)]
        before, self._active_in_evaluation = self._active_in_evaluation, {alarm.name for alarm in alarms}
        self._over += sorted(before - self._active_in_evaluation)
        return [alarm for alarm in alarms if alarm.name not in before]

    def take_over(self) -> list[str]:
        """The alarms that have ended since the last call."""
        over, self._over = self._over, []
        return over

    def state(self) -> dict[str, Any]:
        return {
            "length": self.first_length,
            "entropy": self.first_entropy,
            "ringing": self.active,
            "in_evaluation": sorted(self._active_in_evaluation),
            "suspected": self._suspected,
            "counted": {name: list(shares) for name, shares in self._counted.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Also from a checkpoint that was written before evidence was counted."""
        self.first_length, self.active = state["length"], state["ringing"]
        self.first_entropy = state.get("entropy")
        self._active_in_evaluation = set(state.get("in_evaluation", ()))
        self._suspected = state.get("suspected", {})
        for name, shares in state.get("counted", {}).items():
            self._counted[name] = deque(Share(*share) for share in shares)

    def _news(self, raised: Iterable[TrainingAlarm]) -> list[TrainingAlarm]:
        alarms = list(raised)
        news = [alarm for alarm in alarms if alarm.name not in self.active]
        self.active |= {alarm.name: 0 for alarm in alarms}
        return news

    def _alarm(self, name: str, value: float, limit: float, detail: str = "") -> TrainingAlarm:
        return TrainingAlarm(name, value, limit, self._traits.advice(name, detail))

    def _eroded(self, score: Mapping[str, Any], first: Mapping[str, Any]) -> Iterator[TrainingAlarm]:
        """Losses that are more than the noise of so few episodes."""
        limits = self._limits
        for key, limit, most in (
            ("ordinary", limits.ordinary_drop, math.inf),
            ("hinted", limits.hinted_drop, _HINTED_PROMPTS),
        ):
            now, then = score[key], first[key]
            if now is None or then is None:
                continue
            episodes = min(score["episodes"], first["episodes"], most)
            noise = 2 * math.sqrt((now * (1 - now) + then * (1 - then)) / max(1, episodes))
            if then - now > max(limit, noise):
                yield self._alarm(key, then - now, limit)

    def _changes(self, health: TrainingHealth) -> Iterator[TrainingAlarm]:
        """What the policy has become, beside its start."""
        limits, entropy = self._limits, health.entropy
        if entropy is not None and entropy < limits.entropy_low and self._traits.samples_policy:
            yield self._alarm("entropy", entropy, limits.entropy_low)
        highest = max(limits.entropy_high, (self.first_entropy or 0.0) + _SPIKE)
        if entropy is not None and entropy > highest:
            yield self._alarm("entropy_spike", entropy, highest)
        if health.kl_to_start is not None and health.kl_to_start > limits.kl_to_start:
            yield self._alarm("kl_to_start", health.kl_to_start, limits.kl_to_start)
        if health.length and self.first_length and self._traits.samples_policy:
            drift = max(health.length / self.first_length, self.first_length / health.length)
            if drift > limits.length_drift:
                yield self._alarm("length", drift, limits.length_drift)

    def _rates(self, health: TrainingHealth) -> Iterator[TrainingAlarm]:
        """What happens too often, over as many updates as it takes to tell."""
        limits, traits = self._limits, self._traits
        for name, share, limit, detail, applies in (
            ("lost", health.lost, limits.infra_error_rate, health.lost_reason, True),
            ("hack_rate", health.hacked, limits.hack_rate, "", traits.samples_policy),
            ("zero_variance", health.without_signal, limits.zero_variance, health.flat_kind, traits.compares_rollouts),
            ("hint_leak", health.hint_leaks, limits.hint_leak, "", traits.distils_hints),
        ):
            counted = self._count(name, share)
            if applies and share.part and counted and counted.rate > limit:
                yield self._alarm(name, counted.rate, limit, detail)
        gain = self._count("teacher", health.teacher_gain)
        if gain and health.teacher_gain.whole and gain.rate <= limits.teacher_gain:
            yield self._alarm("teacher", gain.rate, limits.teacher_gain)

    def _count(self, name: str, share: Share) -> Share | None:
        """The sum over the last updates that together have enough; None where all have too little."""
        shares, least = self._counted[name], _LEAST_COUNTED[name]
        if share.whole:
            shares.append(share)
        while shares and sum(each.whole for each in shares) - shares[0].whole >= least:
            shares.popleft()
        total = Share(sum(each.part for each in shares), sum(each.whole for each in shares))
        return total if total.whole >= least and total.part >= _LEAST_FOUND.get(name, -math.inf) else None

    def _facts(self, health: TrainingHealth) -> Iterator[TrainingAlarm]:
        """What one measurement shows."""
        limits = self._limits
        if health.mismatch is not None and health.mismatch > limits.logprob_mismatch:
            yield self._alarm("mismatch", health.mismatch, limits.logprob_mismatch)
        if health.forgotten is not None and health.forgotten > limits.forgotten:
            yield self._alarm("forgotten", health.forgotten, limits.forgotten)
        if health.saturated and self._traits.samples_policy:
            yield self._alarm("saturated", 1.0, 1.0)


_UNTRAINED = "untrained"
"""The key of turns that were sampled by the start."""
_AT_A_TIME = 8
"""Rollouts that are read turn by turn together: so few that one which repeats itself is still noticed."""


def _interleaved(rollouts: Sequence[Sequence[TurnText]], step: int) -> Iterator[TurnText]:
    """Some rollouts at a time, turn by turn: what is usual in one task is not a habit of the policy."""
    named = [[turn | {"session": f"{step}.{at}"} for turn in turns] for at, turns in enumerate(rollouts)]
    for first in range(0, len(named), _AT_A_TIME):
        for turns in zip_longest(*named[first : first + _AT_A_TIME]):
            yield from (turn for turn in turns if turn is not None)


class BehaviourMonitor:
    """Watches what the policy says and does: one rollout of each group, in words.

    `behaviour.jsonl` holds these turns, in the form that `gametape watch` reads. It is also the monitors' memory: a run
    that goes on at a checkpoint reads the file again, as far as the checkpoint knows it, and alarms as before. `rung`
    is the breaker's last one. Turns of the start, before anything was learned, and those of the baseline are what later
    ones are compared with: no alarm is about them."""

    def __init__(self, path: Path, size: int = 0) -> None:
        self._path = path
        self._monitors = MonitorSet()
        self._breaker = BehaviourBreaker(self._monitors)
        self.rung: Rung | None = None
        self.trained = True
        """Whether an update has changed the policy whose turns come next."""
        truncate_file(path, size)
        if path.exists():
            self._feed(read_lines(path))
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def observe(self, step: int, rollouts: Sequence[Sequence[TurnText]]) -> list[TrainingAlarm]:
        """Rollouts of different prompts that were sampled after so many updates; their turns are written down."""
        about = {"step": step} | ({} if self.trained else {_UNTRAINED: True})
        turns = [about | turn for turn in _interleaved(rollouts, step)]
        try:
            write_all(self._fd, b"".join(json.dumps(turn).encode() + b"\n" for turn in turns))
        except OSError as error:
            raise write_error(self._path, error) from error
        return [_alarm(trip) for trip in self._feed(turns)]

    def _feed(self, turns: Iterable[TurnText]) -> list[BreakerTrip]:
        trips = []
        for turn in turns:
            observed = observed_step_from_record(turn)
            if observed is None or self._is_baseline(turn, observed):
                continue
            self._breaker.observe([observed])
            if trip := self._breaker.take_trip():
                trips.append(trip)
                self.rung = trip.rung
        return trips

    def _is_baseline(self, turn: TurnText, observed: ObservedStep) -> bool:
        """Whether the turn is only learned from; then it has been."""
        if not turn.get(_UNTRAINED) and not self._monitors.learning:
            return False
        self._monitors.update(observed)
        return True

    def sync(self) -> int:
        """The file's size, all of which is on disk."""
        os.fsync(self._fd)
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)


def _alarm(trip: BreakerTrip) -> TrainingAlarm:
    alarm = trip.alarm
    return TrainingAlarm(
        f"watch: {alarm.monitor}", alarm.statistic, alarm.threshold, f"look at behaviour.jsonl: {trip.reason}"
    )


_NGRAM = 4
"""Tokens in a row that are no coincidence."""


def hint_leaks(segments: Sequence[TokenSegment], targets: Sequence[DistillTarget]) -> Share:
    """The sampled turns that hold a run of a hint's tokens, of those of one update; none are counted without a hint.
    Turns that the environment answers in the same words are no excuse: what is counted was sampled."""
    hints = {run for target in targets for run in _ngrams(target.hint_ids)}
    turns = [turn for segment in segments for turn in _sampled_turns(segment)]
    return Share(sum(not hints.isdisjoint(_ngrams(turn)) for turn in turns), len(turns)) if hints else Share()


def _sampled_turns(segment: TokenSegment) -> Iterator[list[int]]:
    """The sampled tokens of each step."""
    turn: list[int] = []
    before = 0
    for token, bit, step in zip(segment.ids, segment.mask, segment.steps, strict=True):
        if turn and (not bit or step != before):
            yield turn
            turn = []
        if bit:
            turn.append(token)
        before = step
    if turn:
        yield turn


def _ngrams(ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return (tuple(ids[at : at + _NGRAM]) for at in range(len(ids) - _NGRAM + 1))
