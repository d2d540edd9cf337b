"""The prefix cache: computed blocks are found by their content, a chain in which each has a parent and tokens.

The index knows nothing of conversations. A group's prompt, a system prompt, the next turn of a rollout, a fork and a
return to an earlier turn all begin with tokens that were read before, and these are looked up.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

from gametape.engines.tokenizers.text import common_prefix_length
from gametape.engines.torch.kv_blocks import BlockPool

ROOT = 0
"""The parent of a sequence's first block."""

_MAX_COMPARED = 64
"""How many children of a block are compared with the last, unfinished block of a prompt."""


@dataclass(frozen=True)
class PrefixEntry:
    """A block whose first rows hold the keys and values of `tokens`, which follow the entry `parent`."""

    entry_id: int
    parent: int
    tokens: tuple[int, ...]
    block: int
    version: int
    """The oldest weights that took part."""


class PrefixIndex:
    """Full blocks are shared, for they are never written again. The last block of a sequence may be found by its first
    tokens while its holder goes on writing after them; others copy the rows of those tokens.
    """

    def __init__(self, pool: BlockPool) -> None:
        self._pool = pool
        self._children: dict[int, dict[tuple[int, ...], PrefixEntry]] = {}
        self._by_block: dict[int, PrefixEntry] = {}
        self._entry_ids = count(ROOT + 1)
        self.on_evict: Callable[[PrefixEntry], None] = lambda _entry: None
        """Called with the entry of a block that is about to be evicted."""
        pool.on_evict = self._evict

    def find_full_block(self, parent: int, tokens: tuple[int, ...]) -> PrefixEntry | None:
        """The full block with these tokens."""
        return self._children.get(parent, {}).get(tokens)

    def find_partial_block(self, parent: int, tokens: tuple[int, ...]) -> tuple[PrefixEntry, int] | None:
        """The block with the longest common prefix with these tokens, and its length."""
        best, most = None, 0
        for _, entry in zip(range(_MAX_COMPARED), self._children.get(parent, {}).values(), strict=False):
            same = common_prefix_length(entry.tokens, tokens) if entry.tokens[0] == tokens[0] else 0
            if same > most:
                best, most = entry, same
        return (best, most) if best else None

    def add(self, parent: int, tokens: tuple[int, ...], block: int, version: int) -> PrefixEntry:
        """Add a held block. An entry of the same tokens by weights no older stays, and is returned."""
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
        entry = PrefixEntry(next(self._entry_ids), parent, tokens, block, version)
        siblings[tokens] = self._by_block[block] = entry
        self._pool.mark_cached(block)
        return entry

    def restore(self, entry: PrefixEntry, block: int) -> PrefixEntry:
        """Add an offloaded entry again, in a held block, with the id that its children refer to."""
        restored = replace(entry, block=block)
        self._children.setdefault(entry.parent, {})[entry.tokens] = self._by_block[block] = restored
        self._pool.mark_cached(block)
        return restored

    def _evict(self, block: int) -> None:
        if block in self._by_block:
            self.on_evict(self._by_block[block])
        self.remove(block)

    def remove(self, block: int) -> None:
        """Drop the entry of a block that is about to be overwritten."""
        entry = self._by_block.pop(block, None)
        if entry is None:
            return
        siblings = self._children[entry.parent]
        del siblings[entry.tokens]
        if not siblings:
            del self._children[entry.parent]

    def drop_older_than(self, oldest: int) -> None:
        """Drop the entries that older weights took part in."""
        for entry in [entry for entry in self._by_block.values() if entry.version < oldest]:
            self.remove(entry.block)
            self._pool.unmark_cached(entry.block)
