"""Offloading of evicted KV blocks to the host's memory, as long as there is room.

A rollout that waits for its tools for minutes loses its blocks to those that decode. Copying them back is cheaper than
computing them again.
"""

from collections import OrderedDict

import torch
from torch import Tensor

from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.prefix_index import PrefixEntry

OffloadKey = tuple[int, tuple[int, ...]]


class KVOffload:
    """Room for `block_count` full blocks; the least recently used is dropped first. With none it stores nothing.

    Copies are queued on the device's stream, so none waits for the host and none overtakes a computation.
    """

    def __init__(self, pool: BlockPool, block_count: int) -> None:
        self._pool = pool
        layers, _, *rows = pool.keys_LBTGD.shape
        on_gpu = pool.keys_LBTGD.device.type == "cuda"
        # The layers of a block are contiguous, unlike in the pool: only contiguous memory is copied without the host.
        self._stored_B2LTGD: Tensor = torch.empty(
            (block_count, 2, layers, *rows), dtype=pool.keys_LBTGD.dtype, pin_memory=on_gpu and block_count > 0
        )
        self._free = list(range(block_count))
        self._entries: OrderedDict[OffloadKey, tuple[PrefixEntry, int]] = OrderedDict()
        self.fetched_blocks = 0
        """How many blocks have been copied back."""

    def store(self, entry: PrefixEntry) -> None:
        """Copy this entry's block to the host. Blocks that are not full are soon computed again, and are not stored."""
        if len(entry.tokens) < self._pool.block_size or not (self._free or self._entries):
            return
        self._drop((entry.parent, entry.tokens))
        if not self._free:
            self._drop(next(iter(self._entries)))
        slot = self._free.pop()
        self._entries[entry.parent, entry.tokens] = entry, slot
        self._stored_B2LTGD[slot, 0].copy_(self._pool.keys_LBTGD[:, entry.block], non_blocking=True)
        self._stored_B2LTGD[slot, 1].copy_(self._pool.values_LBTGD[:, entry.block], non_blocking=True)

    def find(self, parent: int, tokens: tuple[int, ...]) -> PrefixEntry | None:
        """The stored entry of these tokens; its block number is no longer valid."""
        stored = self._entries.get((parent, tokens))
        if stored is None:
            return None
        self._entries.move_to_end((parent, tokens))
        return stored[0]

    def fetch(self, entry: PrefixEntry, block: int) -> bool:
        """Move it to a block of the pool; False if it has been dropped meanwhile."""
        stored = self._entries.get((entry.parent, entry.tokens))
        if stored is None or stored[0] is not entry:
            return False
        slot = stored[1]
        self._pool.keys_LBTGD[:, block].copy_(self._stored_B2LTGD[slot, 0], non_blocking=True)
        self._pool.values_LBTGD[:, block].copy_(self._stored_B2LTGD[slot, 1], non_blocking=True)
        self._drop((entry.parent, entry.tokens))
        self.fetched_blocks += 1
        return True

    def drop_older_than(self, oldest: int) -> None:
        """Drop the entries that older weights took part in."""
        for key in [key for key, (entry, _) in self._entries.items() if entry.version < oldest]:
            self._drop(key)

    def _drop(self, key: OffloadKey) -> None:
        dropped = self._entries.pop(key, None)
        if dropped:
            self._free.append(dropped[1])
