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
from gametape.record.json_lines import read_lines
from gametape.record.trouble import unwritable
from gametape.train.alarms import Alarm
from gametape.train.metrics import cut
from gametape.watch.breaker import Breaker
from gametape.watch.ladder import Rung, Trip
from gametape.watch.seen import Seen, seen_in_record, seen_of
from gametape.watch.watching import Watch

_MOST_CHARACTERS = 2000
"""Of one text: enough to see a habit by."""
_AT_A_TIME = 8
"""Rollouts: so few that one which goes round in circles is still seen to."""

Said = dict[str, Any]
"""One turn: `text`, and where there is one, `tool_calls` and `result`."""


def said_in(steps: Sequence[Step]) -> tuple[Said, ...]:
    """A rollout's own turns, in words. Whatever weights sampled them, it is one policy."""
    return tuple(_said(seen) for step in steps if (seen := seen_of(step)) is not None)


def _said(seen: Seen) -> Said:
    calls = [{"name": one.tool, "arguments": one.arguments[:_MOST_CHARACTERS]} for one in seen.actions]
    said: Said = {"text": seen.text[:_MOST_CHARACTERS], "tool_calls": calls}
    return said if seen.result is None else said | {"result": seen.result[:_MOST_CHARACTERS]}


def _in_turns(rollouts: Sequence[Sequence[Said]], step: int) -> Iterator[Said]:
    """Some rollouts at a time, turn by turn as they were played: one task's ways are not a habit of the policy."""
    named = [[turn | {"session": f"{step}.{at}"} for turn in turns] for at, turns in enumerate(rollouts)]
    for first in range(0, len(named), _AT_A_TIME):
        for turns in zip_longest(*named[first : first + _AT_A_TIME]):
            yield from (turn for turn in turns if turn is not None)


class Behaviour:
    """The watch over one run. `rung` is the last one that was taken: a trainer can only be told, or stop."""

    def __init__(self, path: Path, size: int = 0) -> None:
        self._path = path
        self._breaker = Breaker(Watch())
        self.rung: Rung | None = None
        cut(path, size)
        if path.exists():
            self._look(read_lines(path))
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def look(self, step: int, rollouts: Sequence[Sequence[Said]]) -> list[Alarm]:
        """At rollouts of different prompts that were played after so many updates; their turns are written down."""
        said = list(_in_turns(rollouts, step))
        try:
            write_all(self._fd, b"".join(json.dumps({"step": step} | one).encode() + b"\n" for one in said))
        except OSError as error:
            raise unwritable(self._path, error) from error
        return [_alarm(trip) for trip in self._look(said)]

    def _look(self, said: Iterable[Said]) -> list[Trip]:
        trips = []
        for one in said:
            seen = seen_in_record(one)
            self._breaker.look([seen] if seen else [])
            if trip := self._breaker.take():
                trips.append(trip)
                self.rung = trip.rung
        return trips

    def synced(self) -> int:
        """The file's size, all of which is on disk."""
        os.fsync(self._fd)
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)


def _alarm(trip: Trip) -> Alarm:
    found = trip.alarm
    return Alarm(f"watch: {found.monitor}", found.statistic, found.threshold, f"look at behaviour.jsonl: {trip.reason}")
