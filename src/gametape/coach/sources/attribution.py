"""Whose fault an error is: the turn that it was told in, or an earlier one whose call touched what it names."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.coach.complaints import Complaint, argument_names, words_in
from gametape.coach.evidence import HintCandidate, RecordedTurn
from gametape.core.hint import HintSource
from gametape.engines.conversation import Call, ToolResponse


@dataclass(frozen=True)
class ReportedComplaint:
    """A complaint, and the answer that it came with."""

    turn: RecordedTurn
    answer: ToolResponse
    complaint: Complaint


def blame_turns(turns: Sequence[RecordedTurn], complaints: Sequence[ReportedComplaint]) -> list[RecordedTurn]:
    """For each complaint, in their order, the turn to blame.

    It is the turn itself where nothing is named that a call has touched. Otherwise it is the turn whose call has most
    in common with the complaint. Where several have as much, the usual delay of this rollout decides, which the clear
    cases tell. No turn is blamed twice while there is another.
    """
    named = frozenset(name for turn in turns for name in argument_names(turn.calls))
    candidates = [_candidates(turns, one, named) for one in complaints]
    delays = Counter(
        one.turn.number - found[0].number for one, found in zip(complaints, candidates, strict=True) if len(found) == 1
    )
    usual = delays.most_common(1)[0][0] if delays else 0
    chosen: list[RecordedTurn] = []
    for one, found in zip(complaints, candidates, strict=True):
        left = [turn for turn in found if turn not in chosen] or found
        chosen.append(min(left, key=lambda turn: (abs(one.turn.number - turn.number - usual), -turn.number)))
    return chosen


def _candidates(turns: Sequence[RecordedTurn], told: ReportedComplaint, named: frozenset[str]) -> list[RecordedTurn]:
    """Of the turns up to this one, those that have most in common with the complaint."""
    complaint = told.complaint
    subject = complaint.about & named or complaint.words & named
    past = [turn for turn in turns if turn.number <= told.turn.number]
    touching = [turn for turn in past if argument_names(turn.calls) & subject]
    if not touching:
        return [told.turn]
    if not complaint.about & named and told.turn in touching:
        return [told.turn]
    most = max(_common(turn, complaint, subject) for turn in touching)
    return [turn for turn in touching if _common(turn, complaint, subject) == most]


def _common(turn: RecordedTurn, complaint: Complaint, subject: frozenset[str]) -> tuple[int, int]:
    """Of the best call in a turn: how much of the subject it touched, and of what was done and not right."""
    found = []
    for call in turn.calls:
        names = argument_names([call])
        used = names | words_in(call.name)
        found.append((len(names & subject), len(used & complaint.instead)))
    return max(found, default=(0, 0))


_READERS = frozenset({"read", "search", "jump", "check", "history", "semantic_search"})
_LONGEST_EVIDENCE = 300


def last_writer(turns: Sequence[RecordedTurn], path: str, until: RecordedTurn | None = None) -> RecordedTurn | None:
    """The last turn, up to one of them, whose successful call gave this file new content."""
    past = [turn for turn in turns if until is None or turn.number <= until.number]
    return next((turn for turn in reversed(past) if any(_wrote(call, path) for call in _successful_calls(turn))), None)


def make_candidate(
    at: RecordedTurn, noticed: RecordedTurn, source: HintSource, kind: str, hint: str, evidence: str
) -> HintCandidate:
    told = " ".join(evidence.split())[:_LONGEST_EVIDENCE]
    return HintCandidate(at.step.step_id, at.number, source, kind, hint, told, noticed.step.step_id)


def _successful_calls(turn: RecordedTurn) -> list[Call]:
    return [answer.call for answer in turn.answers if not answer.failed]


def _wrote(call: Call, path: str) -> bool:
    given = call.arguments.get("path")
    if call.name in _READERS or not isinstance(given, str) or len(call.arguments) < 2:
        return False
    given = given.removeprefix("/workspace/").removeprefix("./")
    return bool(given) and (path == given or path.endswith(f"/{given}"))
