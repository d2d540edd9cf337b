"""Decode attention on a CPU by our own C kernel.

torch's kernel is made for many queries and spends most of a decode on preparing small matrix products; this one reads
keys and values at the speed of memory, wherever their blocks are.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

import torch
from torch import Tensor

from gametape.engines.torch.attention.interface import SequenceSpan
from gametape.engines.torch.c_kernels import ADDRESS, FLOAT, NUMBER, compile_kernels
from gametape.engines.torch.kv_blocks import BlockPool

_SPLIT_TOKENS = 256
"""About how many tokens of a context one thread attends to at once."""


def load_decode_kernels(pool: BlockPool) -> ctypes.CDLL | None:
    """The kernels for the pool's shape; None without a compiler or in another type than float32."""
    if pool.keys_LBTGD.dtype != torch.float32:
        return None
    return _library(pool.keys_LBTGD.shape[-1], pool.queries_per_kv_head, pool.block_size)


@cache
def _library(width: int, share: int, block: int) -> ctypes.CDLL | None:
    signatures = {
        "store": (ADDRESS, NUMBER, ADDRESS, NUMBER, NUMBER, NUMBER, ADDRESS, ADDRESS, ADDRESS),
        "decode_attention": (
            *(ADDRESS, NUMBER, ADDRESS, ADDRESS, NUMBER, NUMBER),
            *(ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS),
            *(FLOAT, ADDRESS, ADDRESS, NUMBER),
        ),
    }
    return compile_kernels(
        "decode_attention", signatures, WIDTH=width, SHARE=share, BLOCK=block, SPLIT=_split_size(block)
    )


def store_kv(kernels: ctypes.CDLL, pool: BlockPool, layer: int, rows_N: Tensor, k_NGD: Tensor, v_NGD: Tensor) -> None:
    """Store keys and values in these rows of a layer. `k_NGD` and `v_NGD` may be strided."""
    kernels.store(
        k_NGD.data_ptr(),
        k_NGD.stride(0),
        v_NGD.data_ptr(),
        v_NGD.stride(0),
        len(rows_N),
        k_NGD.shape[1],
        rows_N.data_ptr(),
        pool.keys_LBTGD[layer].data_ptr(),
        pool.values_LBTGD[layer].data_ptr(),
    )


class CDecode:
    """One new token for each of S sequences."""

    def __init__(self, kernels: ctypes.CDLL, pool: BlockPool, spans: Sequence[SequenceSpan]) -> None:
        self._kernels, self._pool = kernels, pool
        self._sequences = len(spans)
        rows = [span.start for span in spans]
        lengths = [span.past + 1 for span in spans]
        table_starts = accumulate((len(span.blocks) for span in spans[:-1]), initial=0)
        split_starts = list(accumulate((-(-length // _split_size(pool.block_size)) for length in lengths), initial=0))
        self._splits = split_starts[-1]
        self._numbers = torch.tensor([*rows, *lengths, *table_starts, *split_starts])
        self._tables = torch.tensor([block for span in spans for block in span.blocks])

    def attend(self, layer: int, q_NHD: Tensor, out_NHD: Tensor) -> None:
        """Write the rows of these sequences. `q_NHD` may be strided; `out_NHD` is contiguous."""
        _, heads, width = out_NHD.shape
        partial = torch.empty(self._splits * heads * (width + 2))
        numbers = self._numbers.data_ptr()
        self._kernels.decode_attention(
            q_NHD.data_ptr(),
            q_NHD.stride(0),
            self._pool.keys_LBTGD[layer].data_ptr(),
            self._pool.values_LBTGD[layer].data_ptr(),
            heads // self._pool.queries_per_kv_head,
            self._sequences,
            *(numbers + field * self._sequences * self._numbers.itemsize for field in range(4)),
            self._tables.data_ptr(),
            width**-0.5,
            partial.data_ptr(),
            out_NHD.data_ptr(),
            heads * width,
        )


def _split_size(block: int) -> int:
    """The tokens per split: whole blocks."""
    return block * max(1, _SPLIT_TOKENS // block)
