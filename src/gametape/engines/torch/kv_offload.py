"""Keys and values that had to leave the device, kept in the host's memory as long as there is room.

A rollout that waits for its tools for minutes loses its blocks to those that decode. What it had read comes back from
here by a copy, which is cheaper than to read it again.
"""

from collections import OrderedDict

import torch
from torch import Tensor

from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.prefix_index import PrefixEntry

OffloadKey = tuple[int, tuple[int, ...]]


class KVOffload:
    """Room for `blocks` full blocks; the longest unused goes first. With none it keeps nothing.

    Copies follow each other on the device's own queue, so none waits for the host and none overtakes what computes.
    """

    def __init__(self, pool: BlockPool, block_count: int) -> None:
        self._pool = pool
        layers, _, *rows = pool.keys_LBTGD.shape
        on_gpu = pool.keys_LBTGD.device.type == "cuda"
        # One block after the other, unlike in the pool: only whole stretches are copied without the host's help.
        self._kept_B2LTGD: Tensor = torch.empty(
            (block_count, 2, layers, *rows), dtype=pool.keys_LBTGD.dtype, pin_memory=on_gpu and block_count > 0
        )
        self._free = list(range(block_count))
        self._entries: OrderedDict[OffloadKey, tuple[PrefixEntry, int]] = OrderedDict()
        self.fetched_blocks = 0
        """How many blocks have come back."""

    def store(self, entry: PrefixEntry) -> None:
        """Keep what this entry's block holds. Blocks that are not full are soon read again, and are not kept."""
        if len(entry.tokens) < self._pool.block_size or not (self._free or self._entries):
            return
        self._drop((entry.parent, entry.tokens))
        if not self._free:
            self._drop(next(iter(self._entries)))
        place = self._free.pop()
        self._entries[entry.parent, entry.tokens] = entry, place
        self._kept_B2LTGD[place, 0].copy_(self._pool.keys_LBTGD[:, entry.block], non_blocking=True)
        self._kept_B2LTGD[place, 1].copy_(self._pool.values_LBTGD[:, entry.block], non_blocking=True)

    def find(self, parent: int, tokens: tuple[int, ...]) -> PrefixEntry | None:
        """What is kept under this name, with a block number that means nothing any more."""
        found = self._entries.get((parent, tokens))
        if found is None:
            return None
        self._entries.move_to_end((parent, tokens))
        return found[0]

    def fetch(self, entry: PrefixEntry, block: int) -> bool:
        """Move it into a block of the pool; False if it has been dropped since it was found."""
        found = self._entries.get((entry.parent, entry.tokens))
        if found is None or found[0] is not entry:
            return False
        place = found[1]
        self._pool.keys_LBTGD[:, block].copy_(self._kept_B2LTGD[place, 0], non_blocking=True)
        self._pool.values_LBTGD[:, block].copy_(self._kept_B2LTGD[place, 1], non_blocking=True)
        self._drop((entry.parent, entry.tokens))
        self.fetched_blocks += 1
        return True

    def drop_older_than(self, oldest: int) -> None:
        """What weights older than these took part in must not be found any more."""
        for key in [key for key, (entry, _) in self._entries.items() if entry.version < oldest]:
            self._drop(key)

    def _drop(self, key: OffloadKey) -> None:
        dropped = self._entries.pop(key, None)
        if dropped:
            self._free.append(dropped[1])
