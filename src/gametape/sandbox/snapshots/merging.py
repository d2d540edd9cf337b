"""Keeping stacks of layers short.

A chain of forks adds a layer per generation, and a mount can name only so many. So small layers are merged into larger
ones as they pile up, and a large one below is left alone until those above have grown to its size: an entry is linked
anew only a few times in the life of a chain, and the base hardly ever.
"""

from collections.abc import Sequence

MOST_LAYERS = 20
_WANTED = 12


def layers_to_merge(entries: Sequence[int]) -> int:
    """How many of the topmost layers to merge into one; 0 while the stack is short. `entries` are top first."""
    if len(entries) <= MOST_LAYERS:
        return 0
    count = len(entries) - _WANTED + 1
    total = sum(entries[:count])
    while count < len(entries) - 1 and entries[count] <= 2 * total:
        total += entries[count]
        count += 1
    return count
