"""Alarms about what goes wrong while training before the reward shows it, with advice; and the monitors of the policy's
behaviour. An alarm stops no run by itself."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gametape.core.config import AlarmConfig
from gametape.core.token_segments import TokenSegment
from gametape.record.atomic import write_all
from gametape.record.errors import write_error
from gametape.record.json_lines import read_lines
from gametape.train.rollouts import DistillTarget, TurnText
from gametape.train.run_directory import truncate_file
from gametape.watch.breaker import BehaviourBreaker, BreakerTrip, Rung
from gametape.watch.monitor_set import MonitorSet
from gametape.watch.observed_step import observed_step_from_record


@dataclass(frozen=True)
class TrainingHealth:
    """What alarms are decided on after an update. None where it was not measured."""

    entropy: float | None = None
    length: float | None = None
    kl_to_start: float | None = None
    hack_rate: float = 0.0
    infra_error_rate: float = 0.0
    """The share of rollouts with an infrastructure error."""
    zero_variance: float = 0.0
    mismatch: float | None = None
    hint_leak: float | None = None
    """The share of sampled turns that repeat a hint."""
    teacher_gain: float | None = None
    """Nats by which hints lower the log-probability of what was done at their targets."""
    forgotten: float | None = None
    """The points of its best evaluation's success that the policy would no longer have."""
    saturated: bool = False


@dataclass(frozen=True)
class TrainingAlarm:
    name: str
    value: float
    limit: float
    advice: str


_ADVICE = {
    "entropy_spike": "the policy comes apart: lower the learning rate, and begin again from a checkpoint",
    "lost": "the machinery fails under the rollouts: look at `reason` of what was lost, and run gametape doctor",
    "kl_to_start": "the policy is far from where it began: lower the learning rate or begin again from a checkpoint",
    "hack_rate": "rollouts attack their verifier: run gametape audit on them and close the hole first",
    "zero_variance": "hardly a group has a signal: take easier or harder tasks, larger groups, or hints (arm rlvr_ttf)",
    "mismatch": "sampler and trainer disagree about the same weights: check precision and the published version",
    "hint_leak": "hints come back in what the policy says unasked: lower ttf.weight, or let fewer tokens be targets",
    "forgotten": "what went well becomes unlikely: lower the learning rate, or go back to the best checkpoint",
}
"""For what is too high."""

_QUIET = 20
"""After so many checks without it an alarm is reported again."""


class AlarmMonitor:
    """Reports an alarm when it begins, not in every update that it lasts."""

    def __init__(self, limits: AlarmConfig) -> None:
        self._limits = limits
        self.first_length: float | None = None
        self.active: dict[str, int] = {}
        """By name: how many checks ago it was last found."""

    def check_health(self, health: TrainingHealth) -> list[TrainingAlarm]:
        """After an update."""
        if self.first_length is None:
            self.first_length = health.length
        self.active = {name: ago + 1 for name, ago in self.active.items() if ago < _QUIET}
        return self._news(self._found(health))

    def filter_new(self, alarms: Iterable[TrainingAlarm]) -> list[TrainingAlarm]:
        """The alarms of other monitors that are not active already."""
        return self._news(alarms)

    def check_evaluation(self, score: Mapping[str, Any], first: Mapping[str, Any]) -> list[TrainingAlarm]:
        """After an evaluation, beside the first one: what training must not cost."""
        return self._news(self._eroded(score, first))

    def state(self) -> dict[str, Any]:
        return {"length": self.first_length, "ringing": self.active}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.first_length, self.active = state["length"], state["ringing"]

    def _news(self, raised: Iterable[TrainingAlarm]) -> list[TrainingAlarm]:
        alarms = list(raised)
        news = [alarm for alarm in alarms if alarm.name not in self.active]
        self.active |= {alarm.name: 0 for alarm in alarms}
        return news

    def _eroded(self, score: Mapping[str, Any], first: Mapping[str, Any]) -> Iterator[TrainingAlarm]:
        limits = self._limits
        for key, limit, advice in (
            (
                "ordinary",
                limits.ordinary_drop,
                "turns that were no target get worse: raise ttf.anchor or lower ttf.weight",
            ),
            (
                "hinted",
                limits.hinted_drop,
                "the policy forgets to read hints: its teacher does too, unless it is the start",
            ),
        ):
            if score[key] is not None and first[key] is not None and first[key] - score[key] > limit:
                yield TrainingAlarm(key, first[key] - score[key], limit, advice)

    def _found(self, health: TrainingHealth) -> Iterator[TrainingAlarm]:
        limits = self._limits
        if health.entropy is not None and health.entropy < limits.entropy_low:
            advice = "the policy no longer explores: lower the learning rate, or raise rl.clip_high"
            yield TrainingAlarm("entropy", health.entropy, limits.entropy_low, advice)
        if health.teacher_gain is not None and health.teacher_gain <= limits.teacher_gain:
            advice = "the hinted teacher is no better than its student: gate the hints (arm rlvr_ttf_gated)"
            yield TrainingAlarm("teacher", health.teacher_gain, limits.teacher_gain, advice)
        if health.length and self.first_length:
            drift = max(health.length / self.first_length, self.first_length / health.length)
            if drift > limits.length_drift:
                advice = "turns grow or shrink away from the start: look at some rollouts before you train on"
                yield TrainingAlarm("length", drift, limits.length_drift, advice)
        for name, value, limit in (
            ("entropy_spike", health.entropy, limits.entropy_high),
            ("lost", health.infra_error_rate, limits.infra_error_rate),
            ("kl_to_start", health.kl_to_start, limits.kl_to_start),
            ("hack_rate", health.hack_rate, limits.hack_rate),
            ("zero_variance", health.zero_variance, limits.zero_variance),
            ("mismatch", health.mismatch, limits.logprob_mismatch),
            ("hint_leak", health.hint_leak, limits.hint_leak),
            ("forgotten", health.forgotten, limits.forgotten),
        ):
            if value is not None and value > limit:
                yield TrainingAlarm(name, value, limit, _ADVICE[name])
        if health.saturated:
            yield TrainingAlarm("saturated", 1.0, 1.0, "every task is learned already: give harder ones")


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
    is the breaker's last one."""

    def __init__(self, path: Path, size: int = 0) -> None:
        self._path = path
        self._breaker = BehaviourBreaker(MonitorSet())
        self.rung: Rung | None = None
        truncate_file(path, size)
        if path.exists():
            self._feed(read_lines(path))
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def observe(self, step: int, rollouts: Sequence[Sequence[TurnText]]) -> list[TrainingAlarm]:
        """Rollouts of different prompts that were sampled after so many updates; their turns are written down."""
        turns = list(_interleaved(rollouts, step))
        try:
            write_all(self._fd, b"".join(json.dumps({"step": step} | turn).encode() + b"\n" for turn in turns))
        except OSError as error:
            raise write_error(self._path, error) from error
        return [_alarm(trip) for trip in self._feed(turns)]

    def _feed(self, turns: Iterable[TurnText]) -> list[BreakerTrip]:
        trips = []
        for turn in turns:
            observed = observed_step_from_record(turn)
            self._breaker.observe([observed] if observed else [])
            if trip := self._breaker.take_trip():
                trips.append(trip)
                self.rung = trip.rung
        return trips

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


def hint_leak_rate(segments: Sequence[TokenSegment], targets: Sequence[DistillTarget]) -> float | None:
    """The share of sampled turns that hold a run of a hint's tokens, of those of one update; None without a hint or a
    turn. Turns that the environment answers in the same words are no excuse: what is counted was sampled."""
    hints = {run for target in targets for run in _ngrams(target.hint_ids)}
    turns = [turn for segment in segments for turn in _sampled_turns(segment)]
    if not (hints and turns):
        return None
    return sum(not hints.isdisjoint(_ngrams(turn)) for turn in turns) / len(turns)


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
