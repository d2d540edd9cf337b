"""Splits the blocks of sequences into runs of neighbours that can be read in few calls."""

from collections.abc import Sequence
from dataclasses import dataclass

from gametape.engines.torch.attention.interface import SequenceSpan

_MIN_SHARED_BLOCKS = 4
"""How many leading blocks sequences must share before it pays to read those separately."""

_MAX_UNEVEN = 96
"""How many tokens too many a run may be read with: about the cost of a call of its own."""

_MAX_TRIED = 8
"""How many next runs are tried as the second one of a strided group."""


@dataclass(frozen=True)
class BlockRun:
    """Consecutive rows of the pool, and the sequences that read them."""

    members: tuple[int, ...]
    start: int
    length: int


@dataclass(frozen=True)
class StridedRuns:
    """Runs whose starts are `step` rows apart, read with the length of the longest."""

    runs: list[BlockRun]
    step: int
    length: int


def sequence_runs(block: int, member: int, blocks: Sequence[int], begin: int, end: int) -> list[BlockRun]:
    """The runs of tokens `begin` to `end` of a sequence; `begin` is at the start of a block."""
    runs: list[BlockRun] = []
    at = begin
    while at < end:
        first = last = at // block
        while (last + 1) * block < end and blocks[last + 1] == blocks[last] + 1:
            last += 1
        upto = min(end, (last + 1) * block)
        runs.append(BlockRun((member,), blocks[first] * block, upto - at))
        at = upto
    return runs


def shared_runs(block: int, spans: Sequence[SequenceSpan]) -> list[BlockRun]:
    """The runs that several sequences begin with."""
    candidates: dict[int, list[int]] = {}
    for at, span in enumerate(spans):
        if span.past >= _MIN_SHARED_BLOCKS * block:
            candidates.setdefault(span.blocks[_MIN_SHARED_BLOCKS - 1], []).append(at)
    runs: list[BlockRun] = []
    for members in candidates.values():
        if len(members) == 1:
            continue
        full = min(spans[at].past // block for at in members)
        first = spans[members[0]].blocks
        same = _MIN_SHARED_BLOCKS
        while same < full and all(spans[at].blocks[same] == first[same] for at in members):
            same += 1
        for run in sequence_runs(block, 0, first, 0, same * block):
            runs.append(BlockRun(tuple(members), run.start, run.length))
    return runs


def group_strided(runs: Sequence[BlockRun], rows: int) -> list[StridedRuns]:
    """Every run once, in as few strided groups as a greedy search finds."""
    left: dict[int, BlockRun] = {}
    duplicates = []  # read by one more sequence
    for run in sorted(runs, key=lambda run: run.start):
        if run.start in left:
            duplicates.append(run)
        else:
            left[run.start] = run
    groups = group_strided(duplicates, rows) if duplicates else []
    while left:
        starts = list(left)
        best = [left[starts[0]]]
        for second in starts[1 : 1 + _MAX_TRIED]:
            group = _strided_from(left, starts[0], second - starts[0], rows)
            if len(group) > len(best):
                best = group
        for run in best:
            del left[run.start]
        step = best[1].start - best[0].start if len(best) > 1 else 0
        groups.append(StridedRuns(best, step, max(run.length for run in best)))
    return groups


def _strided_from(left: dict[int, BlockRun], start: int, step: int, rows: int) -> list[BlockRun]:
    group = [left[start]]
    shortest = longest = group[0].length
    while (run := left.get(group[-1].start + step)) is not None:
        shortest, longest = min(shortest, run.length), max(longest, run.length)
        if longest - shortest > _MAX_UNEVEN or run.start + longest > rows:
            break
        group.append(run)
    return group
