"""How a policy behaves while it is trained: a rollout of each group is kept in words, and watched.

`behaviour.jsonl` holds what was seen, in the form that `gametape watch` reads. It is also what the watch remembers: a
run that goes on at a checkpoint looks at the file again, as far as the checkpoint knows it, and alarms as before.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gametape.core.step import Step
from gametape.record.atomic import write_all
from gametape.record.errors import write_error
from gametape.record.json_lines import read_lines
from gametape.train.alarms import TrainingAlarm
from gametape.train.metrics import truncate_file
from gametape.watch.breaker import BehaviourBreaker, BreakerTrip, Rung
from gametape.watch.monitor_set import MonitorSet
from gametape.watch.observed_step import ObservedStep, observed_step, observed_step_from_record

_MOST_CHARACTERS = 2000
"""Of one text: enough to see a habit by."""
_AT_A_TIME = 8
"""Rollouts: so few that one which goes round in circles is still seen to."""

TurnText = dict[str, Any]
"""One turn: `text`, and where there is one, `tool_calls` and `result`."""


def turn_texts(steps: Sequence[Step]) -> tuple[TurnText, ...]:
    """A rollout's own turns, in words. Whatever weights sampled them, it is one policy."""
    return tuple(_turn_text(seen) for step in steps if (seen := observed_step(step)) is not None)


def _turn_text(seen: ObservedStep) -> TurnText:
    calls = [{"name": one.tool, "arguments": one.arguments[:_MOST_CHARACTERS]} for one in seen.actions]
    said: TurnText = {"text": seen.text[:_MOST_CHARACTERS], "tool_calls": calls}
    return said if seen.result is None else said | {"result": seen.result[:_MOST_CHARACTERS]}


def _interleaved(rollouts: Sequence[Sequence[TurnText]], step: int) -> Iterator[TurnText]:
    """Some rollouts at a time, turn by turn as they were played: one task's ways are not a habit of the policy."""
    named = [[turn | {"session": f"{step}.{at}"} for turn in turns] for at, turns in enumerate(rollouts)]
    for first in range(0, len(named), _AT_A_TIME):
        for turns in zip_longest(*named[first : first + _AT_A_TIME]):
            yield from (turn for turn in turns if turn is not None)


class BehaviourMonitor:
    """The watch over one run. `rung` is the last one that was taken: a trainer can only be told, or stop."""

    def __init__(self, path: Path, size: int = 0) -> None:
        self._path = path
        self._breaker = BehaviourBreaker(MonitorSet())
        self.rung: Rung | None = None
        truncate_file(path, size)
        if path.exists():
            self._look(read_lines(path))
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def observe(self, step: int, rollouts: Sequence[Sequence[TurnText]]) -> list[TrainingAlarm]:
        """At rollouts of different prompts that were played after so many updates; their turns are written down."""
        said = list(_interleaved(rollouts, step))
        try:
            write_all(self._fd, b"".join(json.dumps({"step": step} | one).encode() + b"\n" for one in said))
        except OSError as error:
            raise write_error(self._path, error) from error
        return [_alarm(trip) for trip in self._look(said)]

    def _look(self, said: Iterable[TurnText]) -> list[BreakerTrip]:
        trips = []
        for one in said:
            seen = observed_step_from_record(one)
            self._breaker.observe([seen] if seen else [])
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
    found = trip.alarm
    return TrainingAlarm(
        f"watch: {found.monitor}", found.statistic, found.threshold, f"look at behaviour.jsonl: {trip.reason}"
    )
