"""The same call with the same result: it was of no use the first time."""

import json
from collections import Counter
from collections.abc import Iterator

from gametape.coach.evidence import EpisodeEvidence, HintCandidate, RecordedTurn
from gametape.coach.hints import ANOTHER_WAY, BREAK_OFF
from gametape.coach.sources.attribution import make_candidate

_TIMES = 3
"""So often is too often, even with something else in between."""


def candidates_from_repetition(case: EpisodeEvidence) -> Iterator[HintCandidate]:
    before, times = "", Counter[str]()
    for turn in case.turns:
        done = _calls_and_results(turn)
        times[done] += 1
        if turn.calls and (done == before or times[done] >= _TIMES):
            evidence = f"the same call and the same answer, {times[done]} times"
            yield make_candidate(turn, turn, "repetition", "repetition", ANOTHER_WAY, evidence)
        before = done


def _calls_and_results(turn: RecordedTurn) -> str:
    calls = [(call.name, call.arguments) for call in turn.calls]
    return json.dumps([calls, turn.observed_text], sort_keys=True, default=str)


def candidates_from_alarms(case: EpisodeEvidence) -> Iterator[HintCandidate]:
    for alarm in case.alarms:
        if at := case.turn_at_step(alarm.step):
            yield make_candidate(at, at, "monitor", alarm.monitor, BREAK_OFF, alarm.evidence)
