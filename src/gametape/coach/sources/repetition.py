"""Candidates from repetition: the same call with the same result; and from the alarms of monitors."""

import json
from collections import Counter
from collections.abc import Iterator

from gametape.coach.evidence import EpisodeEvidence, HintCandidate, RecordedTurn
from gametape.coach.hints import ANOTHER_WAY, BREAK_OFF
from gametape.coach.sources.attribution import make_candidate

_TIMES = 3
"""Occurrences from which on a call counts as repeated, even with others in between."""


def candidates_from_repetition(evidence: EpisodeEvidence) -> Iterator[HintCandidate]:
    previous, times = "", Counter[str]()
    for turn in evidence.turns:
        action = _calls_and_results(turn)
        times[action] += 1
        if turn.calls and (action == previous or times[action] >= _TIMES):
            detail = f"the same call and the same answer, {times[action]} times"
            yield make_candidate(turn, turn, "repetition", "repetition", ANOTHER_WAY, detail)
        previous = action


def _calls_and_results(turn: RecordedTurn) -> str:
    calls = [(call.name, call.arguments) for call in turn.calls]
    return json.dumps([calls, turn.observed_text], sort_keys=True, default=str)


def candidates_from_alarms(evidence: EpisodeEvidence) -> Iterator[HintCandidate]:
    for alarm in evidence.alarms:
        if turn := evidence.turn_at_step(alarm.step):
            yield make_candidate(turn, turn, "monitor", alarm.monitor, BREAK_OFF, alarm.evidence)
