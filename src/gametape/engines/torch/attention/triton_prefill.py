"""Attention of several new tokens per sequence over a pool of KV blocks, for a GPU: prompts, pieces of them, scores.

A program serves a few neighbouring tokens of one sequence and one KV head: all their query heads share every key and
value that is loaded, out of the blocks where they lie. Keys are taken in the same tiles from the sequence's start on,
so that what a token attends to does not depend on how its prompt was cut into pieces. Runs on a CPU, slowly, under
`TRITON_INTERPRET=1`.
"""

# mypy: disable-error-code="import-not-found, no-untyped-def, untyped-decorator"
# Kernels are typed by Triton, when they are compiled.

from collections.abc import Sequence

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from gametape.engines.torch.attention.interface import SequenceSpan
from gametape.engines.torch.attention.triton_decode import attended, loaded, places_of
from gametape.engines.torch.device_copies import upload
from gametape.engines.torch.kv_blocks import BlockPool


class PackedPrompts:
    """New tokens of several sequences, and on the device all that the layers of a forward need to know of them.

    It goes there in one copy that nothing waits for.
    """

    def __init__(self, pool: BlockPool, ids: Sequence[int], spans: Sequence[SequenceSpan]) -> None:
        self._pool = pool
        dtype = pool.keys_LBTGD.dtype
        self._wide = dtype == torch.float32  # multiplied outside the tensor cores, out of registers
        self._share = triton.next_power_of_2(pool.queries_per_kv_head)
        self._queries = 16 if self._wide else max(1, 128 // self._share)
        block = pool.block_size

        numbers = np.array([(span.start, span.count, span.past) for span in spans], dtype=np.int64)
        starts_S, counts_S, pasts_S = numbers.T
        self._most = max(len(span.blocks) for span in spans)
        tables_SB = np.zeros((len(spans), self._most), dtype=np.int64)
        for row, span in enumerate(spans):
            tables_SB[row, : len(span.blocks)] = span.blocks
        span_N = np.repeat(np.arange(len(spans)), counts_S)
        positions_N = np.arange(len(ids)) + (pasts_S - starts_S)[span_N]
        places_N = tables_SB[span_N, positions_N // block] * block + positions_N % block
        tiles_4T = _tiles(starts_S, counts_S, pasts_S, self._queries)
        self._tile_count = tiles_4T.shape[1]

        parts = [np.array(ids), positions_N, places_N, tiles_4T.T.ravel(), tables_SB.ravel()]
        # Each begins at a multiple of 16 bytes: kernels are compiled anew for what is aligned otherwise.
        rooms = [-(-len(part) // 4) * 4 for part in parts]
        packed = np.zeros(sum(rooms), dtype=np.int32)
        for part, end, room in zip(parts, np.cumsum(rooms), rooms, strict=True):
            packed[end - room : end - room + len(part)] = part
        there = upload(torch.from_numpy(packed), pool.keys_LBTGD.device).split(rooms)
        self.ids_N, self.positions_N, self.places_N = (part[: len(ids)] for part in there[:3])
        self._tiles, self._tables = there[3:]

    def attend(self, layer: int, q_NHD: Tensor) -> Tensor:
        """Each token to its own sequence up to itself; the new keys and values are in their places already."""
        keys_BTGD, values_BTGD = self._pool.keys_LBTGD[layer], self._pool.values_LBTGD[layer]
        _, block, groups, width = keys_BTGD.shape
        out_NHD = torch.empty_like(q_NHD)
        _attend[(self._tile_count, groups)](
            q_NHD,
            keys_BTGD,
            values_BTGD,
            out_NHD,
            self._tiles,
            self._tables,
            self._most,
            width**-0.5,
            HEADS=q_NHD.shape[1],
            GROUPS=groups,
            WIDTH=width,
            BLOCK=block,
            SHARE=self._share,
            QUERIES=self._queries,
            TILE=16 if self._wide else 64,
            num_warps=8,
            num_stages=1 if self._wide else 3 if width <= 64 else 2,
        )
        return out_NHD


def _tiles(starts_S: np.ndarray, counts_S: np.ndarray, pasts_S: np.ndarray, queries: int) -> np.ndarray:
    """[4, T]: the span of each program, its first row, how many rows it has, and the position of the first.

    Those with the most to read come first, so that none of them is left at the end.
    """
    each_S = -(-counts_S // queries)
    span_T = np.repeat(np.arange(len(counts_S)), each_S)
    at_T = (np.arange(len(span_T)) - np.repeat(each_S.cumsum() - each_S, each_S)) * queries
    rows_T = np.minimum(queries, counts_S[span_T] - at_T)
    tiles_4T = np.stack([span_T, starts_S[span_T] + at_T, rows_T, pasts_S[span_T] + at_T])
    longest_first: np.ndarray = tiles_4T[:, np.argsort(-tiles_4T[3], kind="stable")]
    return longest_first


@triton.jit(do_not_specialize=["table_stride"])
def _attend(
    q,
    keys,
    values,
    out,
    tiles,
    tables,
    table_stride,
    scale,
    HEADS: tl.constexpr,
    GROUPS: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    SHARE: tl.constexpr,
    QUERIES: tl.constexpr,
    TILE: tl.constexpr,
):
    tile = tiles + tl.program_id(0) * 4
    group = tl.program_id(1)
    table = tables + tl.load(tile).to(tl.int64) * table_stride
    first = tl.load(tile + 1).to(tl.int64)
    count = tl.load(tile + 2)
    position = tl.load(tile + 3)

    PER_GROUP: tl.constexpr = HEADS // GROUPS
    m = tl.arange(0, QUERIES * SHARE)
    query = m // SHARE
    head = group * PER_GROUP + m % SHARE
    d = tl.arange(0, WIDTH)
    mine = ((query < count) & (m % SHARE < PER_GROUP))[:, None]
    at = (first + query) * (HEADS * WIDTH) + head * WIDTH
    queries = tl.load(q + at[:, None] + d[None, :], mask=mine, other=0.0)

    top = tl.full([QUERIES * SHARE], float("-inf"), tl.float32)
    mass = tl.zeros([QUERIES * SHARE], tl.float32)
    total = tl.zeros([QUERIES * SHARE, WIDTH], tl.float32)
    to_log2 = scale * 1.4426950408889634
    end = position + count
    t = tl.arange(0, TILE)
    places = places_of(table, 0, end, BLOCK, TILE)
    for start in range(0, end, TILE):
        ahead = places_of(table, start + TILE, end, BLOCK, TILE)
        k, v = loaded(keys, values, places, start + t < end, group, GROUPS, WIDTH)
        seen = start + t[None, :] <= (position + query)[:, None]
        top, mass, total = attended(queries, k, v, seen, top, mass, total, to_log2)
        places = ahead
    tl.store(out + at[:, None] + d[None, :], (total / mass[:, None]).to(out.dtype.element_ty), mask=mine)
