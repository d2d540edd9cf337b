"""The pool of memory for keys and values, in blocks of a few tokens each that sequences may share.

A block is free, held by one sequence or more, or cached: held by none, but known to the prefix index, so that a rollout
that continues finds it. Cached blocks are evicted, the least recently used first, when free ones run out.
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
    """`keys_LBTGD[layer]` and `values_LBTGD[layer]` are [blocks, block_size, kv_heads, head_dim], contiguous.

    Token t of a sequence is in its block number t // block_size, at row t % block_size.

    A sequence gets neighbouring blocks where possible, because attention on a CPU reads a run of neighbours in place
    and has to copy anything else. On a GPU the next free block is as good as any.
    """

    def __init__(
        self, spec: DecoderSpec, block_count: int, block_size: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.block_count, self.block_size = block_count, block_size
        self.queries_per_kv_head = spec.heads // spec.kv_heads
        """How many query heads read one key head."""
        shape = (spec.layers, block_count, block_size, spec.kv_heads, spec.head_dim)
        self.keys_LBTGD: Tensor = _zeros(shape, device, dtype)
        self.values_LBTGD: Tensor = _zeros(shape, device, dtype)
        self._in_runs = device.type == "cpu"
        self._taken = bytearray(block_count)
        self._last = 0
        self._free = block_count
        self._holders = [0] * block_count
        self._cached: set[int] = set()
        self._evictable: OrderedDict[int, None] = OrderedDict()
        self.on_evict: Callable[[int], None] = lambda _block: None
        """Called with a cached block before it is evicted."""

    @property
    def available_blocks(self) -> int:
        """How many blocks can be allocated."""
        return self._free + len(self._evictable)

    @property
    def free_blocks(self) -> int:
        """How many blocks can be allocated without an eviction."""
        return self._free

    @property
    def held_blocks(self) -> int:
        """How many blocks sequences hold."""
        return self.block_count - self.available_blocks

    def allocate(self, count: int, after: int | None = None) -> list[int]:
        """Blocks for one holder, the neighbours of `after` if they are free. There must be enough available."""
        if self._free < count:
            self._evict(max(count, self.block_count // 16))
        taken: list[int] = []
        while len(taken) < count:
            at = -1 if after is None else after + 1
            if not 0 < at < self.block_count or self._taken[at]:
                at = self._run_start(count - len(taken)) if self._in_runs else self._next()
            self._taken[at] = 1
            self._holders[at] = 1
            self._free -= 1
            taken.append(at)
            after = at
        return taken

    def acquire(self, blocks: Iterable[int]) -> None:
        """Add a holder to each of these blocks, which are held or cached."""
        for block in blocks:
            self._holders[block] += 1
            self._evictable.pop(block, None)

    def release(self, blocks: Iterable[int]) -> None:
        """One holder less for each. Of a sequence the last is let go first: what comes before it is worth more."""
        for block in reversed(list(blocks)):
            self._holders[block] -= 1
            if self._holders[block] == 0:
                if block in self._cached:
                    self._evictable[block] = None
                else:
                    self._taken[block] = 0
                    self._free += 1

    def mark_cached(self, block: int) -> None:
        """The prefix index knows this held block: keep it when it is released."""
        self._cached.add(block)

    def unmark_cached(self, block: int) -> None:
        """The prefix index has dropped this block."""
        self._cached.discard(block)
        if block in self._evictable:
            del self._evictable[block]
            self._taken[block] = 0
            self._free += 1

    def count_exclusive(self, blocks: Iterable[int]) -> int:
        """How many of these have one holder only."""
        return sum(self._holders[block] == 1 for block in blocks)

    def is_evictable(self, block: int) -> bool:
        return block in self._evictable

    def copy_rows(self, source: int, target: int, count: int) -> None:
        """Copy the first rows of one block to another, in every layer."""
        for pool_LBTGD in (self.keys_LBTGD, self.values_LBTGD):
            pool_LBTGD[:, target, :count].copy_(pool_LBTGD[:, source, :count])

    def _evict(self, count: int) -> None:
        while self._free < count and self._evictable:
            block = next(iter(self._evictable))
            self.on_evict(block)
            self.unmark_cached(block)

    def _next(self) -> int:
        """A free block, searched from the last one on."""
        free = self._taken.find(0, self._last)
        self._last = free if free >= 0 else self._taken.find(0)
        return self._last

    def _run_start(self, count: int) -> int:
        """Where a new run begins: at the multiple of the largest power of two that has room behind it.

        So runs are far from each other and at even distances: attention can read many in one call.
        """
        step = 1 << (self.block_count - 1).bit_length()
        while step >= 2 * count:
            for at in range(0 if step >= self.block_count else step, self.block_count, 2 * step):
                if at + count <= self.block_count and self._taken.find(1, at, at + step) < 0:
                    return at
            step //= 2
        longest = max(_FREE_RUN.finditer(self._taken), key=lambda run: run.end() - run.start())
        return longest.start()


def _zeros(shape: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Zeros, so that rows never written are finite where they are masked out; on a CPU unused pages take no memory."""
    if device.type == "cpu":
        empty: Tensor = torch.frombuffer(mmap.mmap(-1, math.prod(shape) * dtype.itemsize), dtype=dtype).view(shape)
        return empty
    return torch.zeros(shape, device=device, dtype=dtype)
