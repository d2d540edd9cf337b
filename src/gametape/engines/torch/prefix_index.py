"""Finding what has been computed already, by what it is: a chain of blocks, each known by its parent and its tokens.

Nothing is told about conversations. A group's prompt, a system prompt, the next turn of a rollout, a fork and a return
to an earlier turn all begin with tokens that were read before, and that is what is looked up.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

from gametape.engines.torch.kv_blocks import BlockPool

ROOT = 0
"""The parent of a sequence's first block."""

_LOOKED_AT = 64
"""How many children of a block are compared when the last, unfinished block of a prompt is looked for."""


@dataclass(frozen=True)
class PrefixEntry:
    """A block whose first rows hold the keys and values of `tokens`, which follow the block known as `parent`."""

    entry_id: int
    parent: int
    tokens: tuple[int, ...]
    block: int
    version: int
    """The oldest weights that took part."""


class PrefixIndex:
    """Full blocks are shared as they are, for nobody writes to them again. The last block of a sequence may be known
    by its beginning while its holder goes on writing behind that; others copy the beginning.
    """

    def __init__(self, pool: BlockPool) -> None:
        self._pool = pool
        self._children: dict[int, dict[tuple[int, ...], PrefixEntry]] = {}
        self._by_block: dict[int, PrefixEntry] = {}
        self._names = count(ROOT + 1)
        self.on_evict: Callable[[PrefixEntry], None] = lambda _entry: None
        """Called with what is known of a block that is about to be given away."""
        pool.on_evict = self._give_away

    def find_full_block(self, parent: int, tokens: tuple[int, ...]) -> PrefixEntry | None:
        """The full block with these tokens."""
        return self._children.get(parent, {}).get(tokens)

    def find_partial_block(self, parent: int, tokens: tuple[int, ...]) -> tuple[PrefixEntry, int] | None:
        """The block that begins most like these tokens, and for how many of them."""
        best, most = None, 0
        for _, entry in zip(range(_LOOKED_AT), self._children.get(parent, {}).values(), strict=False):
            same = common_prefix_length(entry.tokens, tokens) if entry.tokens[0] == tokens[0] else 0
            if same > most:
                best, most = entry, same
        return (best, most) if best else None

    def add(self, parent: int, tokens: tuple[int, ...], block: int, version: int) -> PrefixEntry:
        """Make a held block known. What is known already, by weights no older, stays; its name is returned."""
        siblings = self._children.setdefault(parent, {})
        known = siblings.get(tokens)
        if known and known.version >= version:
            return known
        if known:
            self.remove(known.block)
            self._pool.unmark_cached(known.block)
            siblings = self._children.setdefault(parent, {})
        if block in self._by_block:
            self.remove(block)
            siblings = self._children.setdefault(parent, {})
        entry = PrefixEntry(next(self._names), parent, tokens, block, version)
        siblings[tokens] = self._by_block[block] = entry
        self._pool.mark_cached(block)
        return entry

    def restore(self, entry: PrefixEntry, block: int) -> PrefixEntry:
        """What has left is in a held block again, under the name by which its children know it."""
        back = replace(entry, block=block)
        self._children.setdefault(entry.parent, {})[entry.tokens] = self._by_block[block] = back
        self._pool.mark_cached(block)
        return back

    def _give_away(self, block: int) -> None:
        if block in self._by_block:
            self.on_evict(self._by_block[block])
        self.remove(block)

    def remove(self, block: int) -> None:
        """The block is about to hold something else."""
        entry = self._by_block.pop(block, None)
        if entry is None:
            return
        siblings = self._children[entry.parent]
        del siblings[entry.tokens]
        if not siblings:
            del self._children[entry.parent]

    def drop_older_than(self, oldest: int) -> None:
        """What weights older than these took part in must not be found any more."""
        for entry in [entry for entry in self._by_block.values() if entry.version < oldest]:
            self.remove(entry.block)
            self._pool.unmark_cached(entry.block)


def common_prefix_length(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """How many leading tokens are the same."""
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
