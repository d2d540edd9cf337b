"""The same call with the same result: it was of no use the first time."""

import json
from collections import Counter
from collections.abc import Iterator

from gametape.coach.hints import ANOTHER_WAY
from gametape.coach.sources.writing import named
from gametape.coach.target import Target
from gametape.coach.turns import Case, Turn

_TIMES = 3
"""So often is too often, even with something else in between."""


def repetition(case: Case) -> Iterator[Target]:
    before, times = "", Counter[str]()
    for turn in case.turns:
        done = _done(turn)
        times[done] += 1
        if turn.calls and (done == before or times[done] >= _TIMES):
            evidence = f"the same call and the same answer, {times[done]} times"
            yield named(turn, turn, "repetition", "repetition", ANOTHER_WAY, evidence)
        before = done


def _done(turn: Turn) -> str:
    calls = [(call.name, call.arguments) for call in turn.calls]
    return json.dumps([calls, turn.seen], sort_keys=True, default=str)
