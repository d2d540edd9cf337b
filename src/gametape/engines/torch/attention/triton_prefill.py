"""Attention of several new tokens per sequence over a pool of KV blocks, for a GPU: prompts, pieces of them, scores.

A program serves a few neighbouring tokens of one sequence and one KV head: all their query heads share every key and
value that is loaded, out of the blocks where they lie. Keys are taken in the same tiles from the sequence's start on,
so that what a token attends to does not depend on how its prompt was cut into pieces. Runs on a CPU, slowly, under
`TRITON_INTERPRET=1`.
"""

# mypy: disable-error-code="import-not-found, no-untyped-def, untyped-decorator"
# Kernels are typed by Triton, when they are compiled.

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from gametape.engines.torch.attention.interface import AttendFn, SequenceSpan
from gametape.engines.torch.attention.triton_decode import attended, loaded, places_of
from gametape.engines.torch.kv_blocks import BlockPool

_QUERIES = 16
"""Tokens of a program."""


def plan(pool: BlockPool, spans: Sequence[SequenceSpan]) -> AttendFn:
    device = pool.keys_LBTGD.device
    _, _, block, groups, width = pool.keys_LBTGD.shape
    most = max(len(span.blocks) for span in spans)
    tables_SB = _there([[*span.blocks, *[0] * (most - len(span.blocks))] for span in spans], device)
    rows_N = _rows(spans, tables_SB, block)
    tiles_T4 = _there(
        [
            [number, span.start + at, min(_QUERIES, span.count - at), span.past + at]
            for number, span in enumerate(spans)
            for at in range(0, span.count, _QUERIES)
        ],
        device,
    )

    def attend(layer: int, q_NHD: Tensor, k_NGD: Tensor, v_NGD: Tensor) -> Tensor:
        keys_BTGD, values_BTGD = pool.keys_LBTGD[layer], pool.values_LBTGD[layer]
        keys_BTGD.view(-1, groups, width).index_copy_(0, rows_N, k_NGD)
        values_BTGD.view(-1, groups, width).index_copy_(0, rows_N, v_NGD)
        heads = q_NHD.shape[1]
        share = triton.next_power_of_2(heads // groups)
        out_NHD = torch.empty(q_NHD.shape, dtype=q_NHD.dtype, device=device)
        wide = q_NHD.dtype == torch.float32  # multiplied outside the tensor cores, out of registers
        _attend[(len(tiles_T4), groups)](
            q_NHD,
            keys_BTGD,
            values_BTGD,
            out_NHD,
            tiles_T4,
            tables_SB,
            q_NHD.stride(0),
            most,
            width**-0.5,
            HEADS=heads,
            GROUPS=groups,
            WIDTH=width,
            BLOCK=block,
            SHARE=share,
            QUERIES=_QUERIES,
            TILE=16 if wide else 64,
            num_warps=8 if wide or share > 4 else 4,
            num_stages=1 if wide else 2,
        )
        return out_NHD

    return attend


def _rows(spans: Sequence[SequenceSpan], tables_SB: Tensor, block: int) -> Tensor:
    """As `interface.kv_rows`, computed on the device: a prompt has thousands of them."""
    device = tables_SB.device
    starts_S, counts_S, pasts_S = _there([[each.start, each.count, each.past] for each in spans], device).unbind(1)
    tokens = sum(span.count for span in spans)
    span_N = torch.arange(len(spans), device=device).repeat_interleave(counts_S, output_size=tokens)
    position_N = torch.arange(tokens, device=device) + (pasts_S - starts_S)[span_N]
    return tables_SB[span_N, position_N // block].long() * block + position_N % block


def _there(numbers: list[list[int]], device: torch.device) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int32, device=device)


@triton.jit(do_not_specialize=["table_stride"])
def _attend(
    q,
    keys,
    values,
    out,
    tiles,
    tables,
    q_stride,
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
    queries = tl.load(q + ((first + query) * q_stride + head * WIDTH)[:, None] + d[None, :], mask=mine, other=0.0)

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
    out_at = out + ((first + query) * (HEADS * WIDTH) + head * WIDTH)[:, None] + d[None, :]
    tl.store(out_at, (total / mass[:, None]).to(out.dtype.element_ty), mask=mine)
