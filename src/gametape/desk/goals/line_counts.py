"""How many lines of a file were added and removed, in time that hardly depends on what the lines are."""

import difflib
from collections import Counter
from itertools import takewhile

_MAX_PAIRS = 100_000
"""Up to so many pairs of equal lines, their order counts too."""


def count_changed_lines(old: bytes, new: bytes) -> tuple[int, int]:
    """The numbers of lines added and removed. Where very many lines equal each other, a line that only moved is not
    counted."""
    before, after = _without_common_ends(old.splitlines(), new.splitlines())
    old_counts, new_counts = Counter(before), Counter(after)
    if sum(count * new_counts[line] for line, count in old_counts.items()) <= _MAX_PAIRS:
        blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        same = sum(block.size for block in blocks)
    else:
        same = (old_counts & new_counts).total()
    return len(after) - same, len(before) - same


def _without_common_ends(old: list[bytes], new: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    first = _common_length(old, new)
    old, new = old[first:], new[first:]
    last = _common_length(old[::-1], new[::-1])
    return old[: len(old) - last], new[: len(new) - last]


def _common_length(left: list[bytes], right: list[bytes]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
