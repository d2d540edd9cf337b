"""Taking sequences of blocks apart into runs that can be read in few calls."""

from collections.abc import Sequence
from dataclasses import dataclass

from gametape.engines.torch.attention.interface import SequenceSpan

_SHARED_FROM = 4
"""How many leading blocks sequences have in common before it pays to read those apart."""

_UNEVEN = 96
"""How many tokens more than its own a run may be read with others: about what a call of its own costs."""

_TRIED = 8
"""How many next runs are tried as the second one of a row at even distances."""


@dataclass(frozen=True)
class BlockRun:
    """A run of rows of the pool that some sequences read."""

    members: tuple[int, ...]
    start: int
    length: int


@dataclass(frozen=True)
class StridedRuns:
    """Runs whose starts are `step` rows apart, read as if all had the length of the longest."""

    runs: list[BlockRun]
    step: int
    length: int


def sequence_runs(block: int, member: int, blocks: Sequence[int], begin: int, end: int) -> list[BlockRun]:
    """The runs that hold tokens `begin` to `end` of a sequence; `begin` is the end of a block."""
    parts: list[BlockRun] = []
    at = begin
    while at < end:
        first = last = at // block
        while (last + 1) * block < end and blocks[last + 1] == blocks[last] + 1:
            last += 1
        upto = min(end, (last + 1) * block)
        parts.append(BlockRun((member,), blocks[first] * block, upto - at))
        at = upto
    return parts


def shared_runs(block: int, spans: Sequence[SequenceSpan]) -> list[BlockRun]:
    """The runs that several sequences begin with."""
    alike: dict[int, list[int]] = {}
    for at, span in enumerate(spans):
        if span.past >= _SHARED_FROM * block:
            alike.setdefault(span.blocks[_SHARED_FROM - 1], []).append(at)
    parts: list[BlockRun] = []
    for members in alike.values():
        if len(members) == 1:
            continue
        full = min(spans[at].past // block for at in members)
        first = spans[members[0]].blocks
        same = _SHARED_FROM
        while same < full and all(spans[at].blocks[same] == first[same] for at in members):
            same += 1
        for part in sequence_runs(block, 0, first, 0, same * block):
            parts.append(BlockRun(tuple(members), part.start, part.length))
    return parts


def group_strided(parts: Sequence[BlockRun], rows: int) -> list[StridedRuns]:
    """Every part once, in as few rows at even distances as a greedy search finds."""
    left: dict[int, BlockRun] = {}
    again = []  # read by one more sequence
    for part in sorted(parts, key=lambda part: part.start):
        if part.start in left:
            again.append(part)
        else:
            left[part.start] = part
    found = group_strided(again, rows) if again else []
    while left:
        starts = list(left)
        best = [left[starts[0]]]
        for second in starts[1 : 1 + _TRIED]:
            row = _row(left, starts[0], second - starts[0], rows)
            if len(row) > len(best):
                best = row
        for part in best:
            del left[part.start]
        step = best[1].start - best[0].start if len(best) > 1 else 0
        found.append(StridedRuns(best, step, max(part.length for part in best)))
    return found


def _row(left: dict[int, BlockRun], start: int, step: int, rows: int) -> list[BlockRun]:
    row = [left[start]]
    shortest = longest = row[0].length
    while (part := left.get(row[-1].start + step)) is not None:
        shortest, longest = min(shortest, part.length), max(longest, part.length)
        if longest - shortest > _UNEVEN or part.start + longest > rows:
            break
        row.append(part)
    return row
