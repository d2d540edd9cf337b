"""Decode attention on a CPU by a kernel of our own.

torch's kernel is made for many queries and spends most of a decode on preparing small matrix products; this one reads
keys and values at the speed of memory, wherever their blocks lie.
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

_STRETCH = 256
"""About how many tokens are attended to in one piece."""


def load_decode_kernels(pool: BlockPool) -> ctypes.CDLL | None:
    """For heads like those of the pool, if there is a compiler."""
    if pool.keys_LBTGD.dtype != torch.float32:
        return None
    return _library(pool.keys_LBTGD.shape[-1], pool.queries_per_kv_head, pool.block_size)


@cache
def _library(width: int, share: int, block: int) -> ctypes.CDLL | None:
    found = compile_kernels("decode_attention", WIDTH=width, SHARE=share, BLOCK=block, SPLIT=_split(block))
    if found:
        found.store.argtypes = (ADDRESS, NUMBER, ADDRESS, NUMBER, NUMBER, NUMBER, ADDRESS, ADDRESS, ADDRESS)
        found.store.restype = None
        found.decode_attention.argtypes = (
            *(ADDRESS, NUMBER, ADDRESS, ADDRESS, NUMBER, NUMBER),
            *(ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS),
            *(FLOAT, ADDRESS, ADDRESS, NUMBER),
        )
        found.decode_attention.restype = None
    return found


def store_kv(kernels: ctypes.CDLL, pool: BlockPool, layer: int, rows_N: Tensor, k_NGD: Tensor, v_NGD: Tensor) -> None:
    """Keys and values into these rows of a layer. Their own rows may lie apart."""
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
        places = [span.start for span in spans]
        lengths = [span.past + 1 for span in spans]
        firsts = accumulate((len(span.blocks) for span in spans[:-1]), initial=0)
        cuts = list(accumulate((-(-length // _split(pool.block_size)) for length in lengths), initial=0))
        self._stretches = cuts[-1]
        self._numbers = torch.tensor([*places, *lengths, *firsts, *cuts])
        self._tables = torch.tensor([block for span in spans for block in span.blocks])

    def attend(self, layer: int, q_NHD: Tensor, out_NHD: Tensor) -> None:
        """Writes the rows of these sequences. Rows of `q_NHD` may lie apart; `out_NHD` is contiguous."""
        _, heads, width = out_NHD.shape
        partial = torch.empty(self._stretches * heads * (width + 2))
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


def _split(block: int) -> int:
    """In whole blocks."""
    return block * max(1, _STRETCH // block)
