"""One sequence that is being read or continued: its ids, the blocks it holds, and how far they are filled."""

from dataclasses import dataclass, field

from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.kv_offload import KVOffload
from gametape.engines.torch.prefix_index import ROOT, PrefixEntry, PrefixIndex, common_prefix_length


@dataclass
class SequenceState:
    """`computed` of `ids` have keys and values. `wanted` is the first position whose prediction is asked for, so
    nothing from there on is taken from the cache.
    """

    ids: list[int]
    first_output: int
    blocks: list[int] = field(default_factory=list)
    entry_ids: list[int] = field(default_factory=list)
    """What the index calls the full blocks, the leading ones."""
    versions: list[int] = field(default_factory=list)
    """The weights at which each block was begun."""
    computed: int = 0

    @property
    def remaining(self) -> int:
        return len(self.ids) - self.computed


class SequenceCache:
    """Moves blocks between the pool, the index, the attic and slots."""

    def __init__(self, pool: BlockPool, index: PrefixIndex, offload: KVOffload) -> None:
        self.pool, self.index, self.offload, self._size = pool, index, offload, pool.block_size
        index.on_evict = offload.store

    def missing_blocks(self, slot: SequenceState, tokens: int) -> int:
        """How many blocks it has to take before this many tokens more can be read."""
        return max(0, -(-(slot.computed + tokens) // self._size) - len(slot.blocks))

    def reuse_prefix(self, slot: SequenceState, fetch: bool = True) -> int:
        """Take over what others have computed of this slot's next tokens; returns how many those are.

        The slot stands at the end of a block. There is a block to spare for a copy, or nothing is copied. What has left
        the device is fetched if that is wanted, and left for later if not.
        """
        before = slot.computed
        while slot.computed % self._size == 0 and slot.computed + self._size <= slot.first_output:
            entry = self.index.find_full_block(self._parent(slot), self._next(slot))
            if entry:
                self.pool.acquire([entry.block])
            elif self.offload.find(self._parent(slot), self._next(slot)):
                entry = self._fetched(slot) if fetch else None
                if entry is None:
                    return slot.computed - before
            else:
                break
            slot.blocks.append(entry.block)
            slot.entry_ids.append(entry.entry_id)
            slot.versions.append(entry.version)
            slot.computed += self._size
        self._copy_beginning(slot)
        return slot.computed - before

    def _fetched(self, slot: SequenceState) -> PrefixEntry | None:
        """The next block from the attic; None if there is no block to put it into, or making room has pushed it out."""
        kept = self.offload.find(self._parent(slot), self._next(slot))
        if kept is None or not self.pool.available_blocks:
            return None
        (block,) = self.pool.allocate(1, slot.blocks[-1] if slot.blocks else None)
        if self.offload.fetch(kept, block):
            return self.index.restore(kept, block)
        self.pool.release([block])
        return None

    def _copy_beginning(self, slot: SequenceState) -> None:
        tokens = tuple(slot.ids[slot.computed : min(slot.computed + self._size, slot.first_output)])
        found = self.index.find_partial_block(self._parent(slot), tokens) if tokens else None
        if found is None:
            return
        entry, same = found
        kept = self.pool.is_evictable(entry.block)
        if kept and len(entry.tokens) == same < self._size:
            self.pool.acquire([entry.block])
            self.index.remove(entry.block)  # nobody else uses it: write on in place
            self.pool.unmark_cached(entry.block)
            slot.blocks.append(entry.block)
        elif self.pool.available_blocks <= kept:
            return
        else:
            self.pool.acquire([entry.block])
            slot.blocks += self.pool.allocate(1, slot.blocks[-1] if slot.blocks else None)
            self.pool.copy_rows(entry.block, slot.blocks[-1], same)
            self.pool.release([entry.block])
        slot.versions.append(entry.version)
        slot.computed += same

    def next_key(self, slot: SequenceState) -> tuple[int, tuple[int, ...]] | None:
        """What the block that this slot is about to begin will be known by; None in the middle of a block."""
        if slot.computed % self._size or slot.computed >= slot.first_output:
            return None
        return self._parent(slot), self._next(slot)

    def allocate(self, slot: SequenceState, tokens: int, version: int) -> None:
        """Take the blocks for the next tokens; they are there."""
        missing = self.missing_blocks(slot, tokens)
        if missing:
            slot.blocks += self.pool.allocate(missing, slot.blocks[-1] if slot.blocks else None)
            slot.versions += [version] * missing

    def advance(self, slot: SequenceState, tokens: int) -> None:
        """So many tokens more have been read: full blocks become known."""
        slot.computed += tokens
        while (len(slot.entry_ids) + 1) * self._size <= slot.computed:
            at = len(slot.entry_ids)
            known = tuple(slot.ids[at * self._size : (at + 1) * self._size])
            slot.entry_ids.append(
                self.index.add(self._parent(slot), known, slot.blocks[at], slot.versions[at]).entry_id
            )

    def share_partial_block(self, slot: SequenceState) -> None:
        """Make the last, unfinished block known by what is in it."""
        full = len(slot.entry_ids)
        tokens = tuple(slot.ids[full * self._size : slot.computed])
        if tokens:
            self.index.add(self._parent(slot), tokens, slot.blocks[full], slot.versions[full])

    def crop(self, slot: SequenceState, blocks: int) -> None:
        """Let go of all blocks but the first so many; what they held is read again later."""
        if blocks < len(slot.blocks):
            self.pool.release(slot.blocks[blocks:])
            del slot.blocks[blocks:], slot.versions[blocks:], slot.entry_ids[blocks:]
            slot.computed = min(slot.computed, blocks * self._size)

    def release(self, slot: SequenceState) -> None:
        """Release everything; what is known can be found again as long as nobody needs its room."""
        if slot.blocks:
            self.share_partial_block(slot)
        self.crop(slot, 0)

    def count_fresh_blocks(self, slot: SequenceState, oldest: int) -> int:
        """How many leading blocks are of weights no older than `oldest`."""
        return next((at for at, version in enumerate(slot.versions) if version < oldest), len(slot.versions))

    def drop_older_than(self, oldest: int) -> None:
        """What weights older than these took part in must not be found any more."""
        self.index.drop_older_than(oldest)
        self.offload.drop_older_than(oldest)

    def _parent(self, slot: SequenceState) -> int:
        return slot.entry_ids[-1] if slot.entry_ids else ROOT

    def _next(self, slot: SequenceState) -> tuple[int, ...]:
        return tuple(slot.ids[slot.computed : slot.computed + self._size])


def worth_waiting_for(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether it is worth waiting until one of two blocks is computed, to copy from it."""
    return 2 * common_prefix_length(a, b) >= min(len(a), len(b))
