"""Does the policy say what it was only told? A hint is spliced in before a turn and must not come back in one."""

from collections.abc import Iterator, Sequence

from gametape.core.segments import Segment
from gametape.train.aims import Aim

_RUN = 4
"""Tokens in a row that are no accident."""


def leaked_share(segments: Sequence[Segment], aims: Sequence[Aim]) -> float | None:
    """The share of sampled turns that hold a run of a hint's tokens, of those of one update; None without a hint or a
    turn. Turns that the environment answers in the same words are no excuse: what is counted was sampled."""
    hints = {run for aim in aims for run in _runs(aim.inserted)}
    turns = [turn for segment in segments for turn in _turns(segment)]
    if not (hints and turns):
        return None
    return sum(not hints.isdisjoint(_runs(turn)) for turn in turns) / len(turns)


def _turns(segment: Segment) -> Iterator[list[int]]:
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


def _runs(ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return (tuple(ids[at : at + _RUN]) for at in range(len(ids) - _RUN + 1))
