"""Memory for keys and values, in blocks of a few tokens each that sequences may share.

A block is free, held by one sequence or more, or kept: held by nobody, but known to the prefix index, so that a rollout
that goes on finds it. Kept blocks are given away, the longest unused first, when free ones run out.
"""

import math
import mmap
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from gametape.engines.torch.decoder_spec import DecoderSpec

_FREE_RUN = re.compile(b"\x00+")


class BlockPool:
    """`keys_LBTGD[layer]` and `values_LBTGD[layer]` are [blocks, block, kv_heads, head_dim], contiguous: token t of a
    sequence lies in its block number t // block, at row t % block.

    A sequence is given neighbouring blocks where that is possible, because attention on a CPU reads a run of
    neighbours in place and has to copy anything else. On a GPU the next free block is as good as any.
    """

    def __init__(
        self, spec: DecoderSpec, block_count: int, block_size: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.block_count, self.block_size = block_count, block_size
        self.queries_per_kv_head = spec.heads // spec.kv_heads
        """How many query heads read one key head."""
        shape = (spec.layers, block_count, block_size, spec.kv_heads, spec.head_dim)
        self.keys_LBTGD: Tensor = _blank(shape, device, dtype)
        self.values_LBTGD: Tensor = _blank(shape, device, dtype)
        self._in_runs = device.type == "cpu"
        self._taken = bytearray(block_count)
        self._last = 0
        self._free = block_count
        self._holders = [0] * block_count
        self._known: set[int] = set()
        self._kept: OrderedDict[int, None] = OrderedDict()
        self.on_evict: Callable[[int], None] = lambda _block: None
        """Called with a kept block before it is given away."""

    @property
    def available_blocks(self) -> int:
        """How many blocks can be taken."""
        return self._free + len(self._kept)

    @property
    def held_blocks(self) -> int:
        """How many blocks some sequence holds."""
        return self.block_count - self.available_blocks

    def allocate(self, count: int, after: int | None = None) -> list[int]:
        """Blocks for one holder, the neighbours of `after` if they are free. The caller knows that there are."""
        if self._free < count:
            self._make_free(max(count, self.block_count // 16))
        taken: list[int] = []
        while len(taken) < count:
            at = -1 if after is None else after + 1
            if not 0 < at < self.block_count or self._taken[at]:
                at = self._start(count - len(taken)) if self._in_runs else self._next()
            self._taken[at] = 1
            self._holders[at] = 1
            self._free -= 1
            taken.append(at)
            after = at
        return taken

    def acquire(self, blocks: Iterable[int]) -> None:
        """One holder more for each: blocks that are held or kept."""
        for block in blocks:
            self._holders[block] += 1
            self._kept.pop(block, None)

    def release(self, blocks: Iterable[int]) -> None:
        """One holder less for each. Of a sequence the last is let go first: what comes before it is worth more."""
        for block in reversed(list(blocks)):
            self._holders[block] -= 1
            if self._holders[block] == 0:
                if block in self._known:
                    self._kept[block] = None
                else:
                    self._taken[block] = 0
                    self._free += 1

    def mark_cached(self, block: int) -> None:
        """The prefix index can find this held block: keep it when it is let go."""
        self._known.add(block)

    def unmark_cached(self, block: int) -> None:
        """The prefix index has dropped it."""
        self._known.discard(block)
        if block in self._kept:
            del self._kept[block]
            self._taken[block] = 0
            self._free += 1

    def count_exclusive(self, blocks: Iterable[int]) -> int:
        """How many of these have one holder only."""
        return sum(self._holders[block] == 1 for block in blocks)

    def is_evictable(self, block: int) -> bool:
        return block in self._kept

    def copy_rows(self, source: int, target: int, count: int) -> None:
        """The first rows of one block into another, in every layer."""
        for pool_LBTGD in (self.keys_LBTGD, self.values_LBTGD):
            pool_LBTGD[:, target, :count].copy_(pool_LBTGD[:, source, :count])

    def _make_free(self, count: int) -> None:
        while self._free < count and self._kept:
            block = next(iter(self._kept))
            self.on_evict(block)
            self.unmark_cached(block)

    def _next(self) -> int:
        """A free block, searched from where the last one was found."""
        found = self._taken.find(0, self._last)
        self._last = found if found >= 0 else self._taken.find(0)
        return self._last

    def _start(self, count: int) -> int:
        """Where a new run begins: at the roundest number that has room behind it.

        So runs get as far from each other as they can, and lie at even distances: attention can read many in one call.
        """
        step = 1 << (self.block_count - 1).bit_length()
        while step >= 2 * count:
            for at in range(0 if step >= self.block_count else step, self.block_count, 2 * step):
                if at + count <= self.block_count and self._taken.find(1, at, at + step) < 0:
                    return at
            step //= 2
        longest = max(_FREE_RUN.finditer(self._taken), key=lambda found: found.end() - found.start())
        return longest.start()


def _blank(shape: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Zeros, so that what was never written is finite where it is masked out; on a CPU pages that no use touches."""
    if device.type == "cpu":
        empty: Tensor = torch.frombuffer(mmap.mmap(-1, math.prod(shape) * dtype.itemsize), dtype=dtype).view(shape)
        return empty
    return torch.zeros(shape, device=device, dtype=dtype)
