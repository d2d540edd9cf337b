"""Attributes an error to a turn: the turn that reported it, or an earlier one whose call used what it names."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.coach.complaints import Complaint, argument_names, words_in
from gametape.coach.evidence import HintCandidate, RecordedTurn
from gametape.coach.hints import FIXED_HINTS
from gametape.core.hint import HintAuthor, HintSource
from gametape.engines.conversation import Call, ToolResponse


@dataclass(frozen=True)
class ReportedComplaint:
    """A complaint with the turn and the answer that reported it."""

    turn: RecordedTurn
    answer: ToolResponse
    complaint: Complaint


def blame_turns(turns: Sequence[RecordedTurn], complaints: Sequence[ReportedComplaint]) -> list[RecordedTurn]:
    """For each complaint, in their order, the turn to blame.

    It is the reporting turn where the complaint names nothing that a call has used. Otherwise it is the turn whose call
    has most in common with the complaint. Where several have as much, the usual delay of this rollout decides, which
    the clear cases give. No turn is blamed twice while there is another.
    """
    named = frozenset(name for turn in turns for name in argument_names(turn.calls))
    candidates = [_candidates(turns, reported, named) for reported in complaints]
    delays = Counter(
        reported.turn.number - options[0].number
        for reported, options in zip(complaints, candidates, strict=True)
        if len(options) == 1
    )
    usual_delay = delays.most_common(1)[0][0] if delays else 0
    blamed: list[RecordedTurn] = []
    for reported, options in zip(complaints, candidates, strict=True):
        unblamed = [turn for turn in options if turn not in blamed] or options
        blamed.append(
            min(unblamed, key=lambda turn: (abs(reported.turn.number - turn.number - usual_delay), -turn.number))
        )
    return blamed


def _candidates(
    turns: Sequence[RecordedTurn], reported: ReportedComplaint, named: frozenset[str]
) -> list[RecordedTurn]:
    """The turns up to the reporting one that have most in common with the complaint."""
    complaint = reported.complaint
    objects = complaint.about & named or complaint.words & named
    past = [turn for turn in turns if turn.number <= reported.turn.number]
    touching = [turn for turn in past if argument_names(turn.calls) & objects]
    if not touching:
        return [reported.turn]
    if not complaint.about & named and reported.turn in touching:
        return [reported.turn]
    most = max(_common(turn, complaint, objects) for turn in touching)
    return [turn for turn in touching if _common(turn, complaint, objects) == most]


def _common(turn: RecordedTurn, complaint: Complaint, objects: frozenset[str]) -> tuple[int, int]:
    """For the best call of a turn: how many of the objects it used, and how many words for what was done wrongly."""
    overlaps = []
    for call in turn.calls:
        names = argument_names([call])
        used = names | words_in(call.name)
        overlaps.append((len(names & objects), len(used & complaint.instead)))
    return max(overlaps, default=(0, 0))


_READERS = frozenset({"read", "search", "jump", "check", "history", "semantic_search"})
_LONGEST_EVIDENCE = 300


def last_writer(turns: Sequence[RecordedTurn], path: str, until: RecordedTurn | None = None) -> RecordedTurn | None:
    """The last turn, up to one of them, whose successful call gave this file new content."""
    past = [turn for turn in turns if until is None or turn.number <= until.number]
    return next((turn for turn in reversed(past) if any(_wrote(call, path) for call in _successful_calls(turn))), None)


def make_candidate(
    turn: RecordedTurn, noticed: RecordedTurn, source: HintSource, kind: str, hint: str, evidence: str
) -> HintCandidate:
    detail = " ".join(evidence.split())[:_LONGEST_EVIDENCE]
    author: HintAuthor = "judge" if source == "judge" else "rule" if hint in FIXED_HINTS else "message"
    return HintCandidate(
        turn.step.step_id, turn.number, source, kind, hint, detail, noticed.step.step_id, author=author
    )


def _successful_calls(turn: RecordedTurn) -> list[Call]:
    return [answer.call for answer in turn.answers if not answer.failed]


def _wrote(call: Call, path: str) -> bool:
    given = call.arguments.get("path")
    if call.name in _READERS or not isinstance(given, str) or len(call.arguments) < 2:
        return False
    given = given.removeprefix("/workspace/").removeprefix("./")
    return bool(given) and (path == given or path.endswith(f"/{given}"))
