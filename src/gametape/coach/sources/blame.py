"""Whose fault an error is: the turn that it was told in, or an earlier one whose call touched what it names."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.coach.turns import Turn
from gametape.coach.wording import Complaint, names_in, words_in
from gametape.engines.conversation import Answer


@dataclass(frozen=True)
class Told:
    """A complaint, and the answer that it came with."""

    turn: Turn
    answer: Answer
    complaint: Complaint


def blamed(turns: Sequence[Turn], told: Sequence[Told]) -> list[Turn]:
    """For each complaint, in their order, the turn to blame.

    It is the turn itself where nothing is named that a call has touched. Otherwise it is the turn whose call has most
    in common with the complaint. Where several have as much, the usual delay of this rollout decides, which the clear
    cases tell. No turn is blamed twice while there is another.
    """
    named = frozenset(name for turn in turns for name in names_in(turn.calls))
    candidates = [_candidates(turns, one, named) for one in told]
    delays = Counter(
        one.turn.number - found[0].number for one, found in zip(told, candidates, strict=True) if len(found) == 1
    )
    usual = delays.most_common(1)[0][0] if delays else 0
    chosen: list[Turn] = []
    for one, found in zip(told, candidates, strict=True):
        left = [turn for turn in found if turn not in chosen] or found
        chosen.append(min(left, key=lambda turn: (abs(one.turn.number - turn.number - usual), -turn.number)))
    return chosen


def _candidates(turns: Sequence[Turn], told: Told, named: frozenset[str]) -> list[Turn]:
    """Of the turns up to this one, those that have most in common with the complaint."""
    complaint = told.complaint
    subject = complaint.about & named or complaint.words & named
    past = [turn for turn in turns if turn.number <= told.turn.number]
    touching = [turn for turn in past if names_in(turn.calls) & subject]
    if not touching:
        return [told.turn]
    if not complaint.about & named and told.turn in touching:
        return [told.turn]
    most = max(_common(turn, complaint, subject) for turn in touching)
    return [turn for turn in touching if _common(turn, complaint, subject) == most]


def _common(turn: Turn, complaint: Complaint, subject: frozenset[str]) -> tuple[int, int]:
    """Of the best call in a turn: how much of the subject it touched, and of what was done and not right."""
    found = []
    for call in turn.calls:
        names = names_in([call])
        used = names | words_in(call.name)
        found.append((len(names & subject), len(used & complaint.instead)))
    return max(found, default=(0, 0))
