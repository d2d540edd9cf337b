"""The state of a sequence (ids, blocks, progress), and the cache that gives it blocks and takes them back."""

from dataclasses import dataclass, field

from gametape.engines.tokenizers.text import common_prefix_length
from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.kv_offload import KVOffload
from gametape.engines.torch.prefix_index import ROOT, PrefixEntry, PrefixIndex


@dataclass
class SequenceState:
    """`computed` of `ids` have keys and values. Logits are needed from `first_output` on, so nothing from there on is
    taken from the cache.
    """

    ids: list[int]
    first_output: int
    blocks: list[int] = field(default_factory=list)
    entry_ids: list[int] = field(default_factory=list)
    """The ids of the leading, full blocks in the prefix index."""
    versions: list[int] = field(default_factory=list)
    """The version of the weights with which each block was begun."""
    computed: int = 0

    @property
    def remaining(self) -> int:
        return len(self.ids) - self.computed


class SequenceCache:
    """Moves blocks between the pool, the prefix index, the offload and the sequences."""

    def __init__(self, pool: BlockPool, index: PrefixIndex, offload: KVOffload) -> None:
        self.pool, self.index, self.offload, self._size = pool, index, offload, pool.block_size
        index.on_evict = offload.store

    def missing_blocks(self, sequence: SequenceState, tokens: int) -> int:
        """How many blocks it lacks for this many more tokens."""
        return max(0, -(-(sequence.computed + tokens) // self._size) - len(sequence.blocks))

    def reuse_prefix(self, sequence: SequenceState, fetch: bool = True) -> int:
        """Take over cached blocks for this sequence's next tokens; returns how many tokens those are.

        The sequence stands at the end of a block. Without a free block for a copy nothing is copied. Offloaded blocks
        are copied back with `fetch`, else left for later.
        """
        before = sequence.computed
        while sequence.computed % self._size == 0 and sequence.computed + self._size <= sequence.first_output:
            entry = self.index.find_full_block(self._parent(sequence), self._next(sequence))
            if entry:
                self.pool.acquire([entry.block])
            elif self.offload.find(self._parent(sequence), self._next(sequence)):
                entry = self._fetch(sequence) if fetch else None
                if entry is None:
                    return sequence.computed - before
            else:
                break
            sequence.blocks.append(entry.block)
            sequence.entry_ids.append(entry.entry_id)
            sequence.versions.append(entry.version)
            sequence.computed += self._size
        self._reuse_partial_block(sequence)
        return sequence.computed - before

    def _fetch(self, sequence: SequenceState) -> PrefixEntry | None:
        """The next block from the offload; None if there is no free block, or making room has dropped it."""
        entry = self.offload.find(self._parent(sequence), self._next(sequence))
        if entry is None or not self.pool.available_blocks:
            return None
        (block,) = self.pool.allocate(1, sequence.blocks[-1] if sequence.blocks else None)
        if self.offload.fetch(entry, block):
            return self.index.restore(entry, block)
        self.pool.release([block])
        return None

    def _reuse_partial_block(self, sequence: SequenceState) -> None:
        tokens = tuple(sequence.ids[sequence.computed : min(sequence.computed + self._size, sequence.first_output)])
        match = self.index.find_partial_block(self._parent(sequence), tokens) if tokens else None
        if match is None:
            return
        entry, same = match
        evictable = self.pool.is_evictable(entry.block)
        if evictable and len(entry.tokens) == same < self._size:
            self.pool.acquire([entry.block])
            self.index.remove(entry.block)  # no other holder: go on writing in place
            self.pool.unmark_cached(entry.block)
            sequence.blocks.append(entry.block)
        elif self.pool.available_blocks <= evictable:
            return
        else:
            self.pool.acquire([entry.block])
            sequence.blocks += self.pool.allocate(1, sequence.blocks[-1] if sequence.blocks else None)
            self.pool.copy_rows(entry.block, sequence.blocks[-1], same)
            self.pool.release([entry.block])
        sequence.versions.append(entry.version)
        sequence.computed += same

    def next_key(self, sequence: SequenceState) -> tuple[int, tuple[int, ...]] | None:
        """The parent and tokens of the block that this sequence is about to begin; None in the middle of a block."""
        if sequence.computed % self._size or sequence.computed >= sequence.first_output:
            return None
        return self._parent(sequence), self._next(sequence)

    def allocate(self, sequence: SequenceState, tokens: int, version: int) -> None:
        """Allocate the blocks for the next tokens; there must be enough."""
        missing = self.missing_blocks(sequence, tokens)
        if missing:
            sequence.blocks += self.pool.allocate(missing, sequence.blocks[-1] if sequence.blocks else None)
            sequence.versions += [version] * missing

    def advance(self, sequence: SequenceState, tokens: int) -> None:
        """Count tokens as read; full blocks are added to the index."""
        sequence.computed += tokens
        while (len(sequence.entry_ids) + 1) * self._size <= sequence.computed:
            at = len(sequence.entry_ids)
            known = tuple(sequence.ids[at * self._size : (at + 1) * self._size])
            sequence.entry_ids.append(
                self.index.add(self._parent(sequence), known, sequence.blocks[at], sequence.versions[at]).entry_id
            )

    def share_partial_block(self, sequence: SequenceState) -> None:
        """Add the last, unfinished block to the index."""
        full = len(sequence.entry_ids)
        tokens = tuple(sequence.ids[full * self._size : sequence.computed])
        if tokens:
            self.index.add(self._parent(sequence), tokens, sequence.blocks[full], sequence.versions[full])

    def crop(self, sequence: SequenceState, blocks: int) -> None:
        """Release all blocks but the first `blocks`; their tokens are read again later."""
        if blocks < len(sequence.blocks):
            self.pool.release(sequence.blocks[blocks:])
            del sequence.blocks[blocks:], sequence.versions[blocks:], sequence.entry_ids[blocks:]
            sequence.computed = min(sequence.computed, blocks * self._size)

    def release(self, sequence: SequenceState) -> None:
        """Release all blocks; those in the index can be reused until they are evicted."""
        if sequence.blocks:
            self.share_partial_block(sequence)
        self.crop(sequence, 0)

    def count_fresh_blocks(self, sequence: SequenceState, oldest: int) -> int:
        """How many leading blocks are of weights no older than `oldest`."""
        return next((at for at, version in enumerate(sequence.versions) if version < oldest), len(sequence.versions))

    def drop_older_than(self, oldest: int) -> None:
        """Drop the cached blocks that older weights took part in."""
        self.index.drop_older_than(oldest)
        self.offload.drop_older_than(oldest)

    def _parent(self, sequence: SequenceState) -> int:
        return sequence.entry_ids[-1] if sequence.entry_ids else ROOT

    def _next(self, sequence: SequenceState) -> tuple[int, ...]:
        return tuple(sequence.ids[sequence.computed : sequence.computed + self._size])


def worth_waiting_for(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two blocks have so much in common that one should wait for the other and copy from it."""
    return 2 * common_prefix_length(a, b) >= min(len(a), len(b))
