"""Decode attention over a pool of KV blocks, for a GPU: one new token per row, and only live KV is read.

A program serves one row and one KV head: its query heads share every key and value that is loaded. The same launch
turns the new query and key by their position, stores the new key and value in the row's block, and attends, so nothing
goes through memory twice. A long context is cut into stretches of `split` tokens that are attended to side by side and
joined by a second small kernel; where the cuts lie depends on the row's own length alone, so a row's result does not
depend on what else is in the batch.

Every product and sum is rounded where transformers rounds it, so that sampling and training disagree as little as they
can. Runs on a CPU, slowly, under `TRITON_INTERPRET=1`.
"""

# mypy: disable-error-code="import-not-found, no-untyped-def, untyped-decorator"
# Kernels are typed by Triton, when they are compiled.

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from gametape.engines.torch.triton_elementwise import turned
from gametape.engines.torch.triton_launch import early, follow


@dataclass(frozen=True)
class AttentionTiling:
    """How the work is cut: tokens per stretch of context and per loaded tile; warps and loads in flight per program.

    With `ahead`, where a tile lies is looked up while the one before it is attended to.
    """

    split: int = 1024
    tile: int = 32
    warps: int = 1
    stages: int = 3
    ahead: bool = False


@dataclass(frozen=True)
class RowState:
    """Where the rows of a batch stand. A row that is not live is neither read nor written."""

    lengths_N: Tensor
    """Tokens with KV: the new token's position. int32."""
    live_N: Tensor
    tables_NB: Tensor
    """The row's blocks, in order. int32."""


@dataclass(frozen=True)
class RotaryInputs:
    """What becomes of queries and keys before they meet: cosines and sines per position, and gains where heads are
    normalised."""

    cosines_PD: Tensor
    """Half a head wide."""
    sines_PD: Tensor
    query_gain_D: Tensor | None = None
    key_gain_D: Tensor | None = None
    eps: float = 1e-6


def attention_tilings(rows: int, kv_heads: int, head_dim: int) -> list[AttentionTiling]:
    """Those worth measuring for batches of at most this many rows, the likeliest first.

    Few rows with few heads are cut short, because they need more programs each. An engine keeps to one of these,
    because where the cuts lie shows in the last bits.
    """
    programs = rows * kv_heads
    split = 1024 if programs >= 768 else 512 if programs >= 384 else 256
    plain = ((32, 1, 3), (32, 1, 4), (64, 2, 3))
    narrow = ((32, 1, 5), (64, 2, 4), (32, 2, 5))
    wide = ((32, 2, 4), (64, 4, 3), (32, 4, 5))
    return [
        *(AttentionTiling(split, *cut) for cut in (plain if programs > 128 else plain[::-1])),
        *(AttentionTiling(split, *cut, ahead=True) for cut in (narrow if head_dim <= 64 else wide)),
    ]


def splits_for(length: int, split: int) -> int:
    """How many stretches rows need that hold at most `length` tokens with KV."""
    return length // split + 1


def decode_attention(
    qkv_NX: Tensor,
    keys: Tensor,
    values: Tensor,
    rows: RowState,
    rotary: RotaryInputs,
    out_NX: Tensor,
    splits: int,
    tiling: AttentionTiling,
) -> None:
    """Append each live row's new key and value to its blocks, and write what its queries attend to into `out_NX`.

    `qkv_NX` holds, side by side, every query head, every key head, every value head. `keys` and `values` are one
    layer's pool: [blocks, block, kv heads, head dim]. `splits` bounds every row: see `splits_for`.
    """
    count = rows.lengths_N.shape[0]
    _, block, groups, width = keys.shape
    heads = out_NX.shape[1] // width
    partial = (count * heads * splits) if splits > 1 else 0
    sums = torch.empty((partial, width), dtype=torch.float32, device=qkv_NX.device)
    stats = torch.empty((partial, 2), dtype=torch.float32, device=qkv_NX.device)
    _attend[(groups, count, splits)](
        qkv_NX,
        rotary.cosines_PD,
        rotary.sines_PD,
        rotary.query_gain_D,
        rotary.key_gain_D,
        keys,
        values,
        rows.tables_NB,
        rows.lengths_N,
        rows.live_N,
        out_NX,
        sums,
        stats,
        qkv_NX.stride(0),
        rows.tables_NB.stride(0),
        splits,
        rotary.eps,
        width**-0.5,
        HEADS=heads,
        GROUPS=groups,
        WIDTH=width,
        BLOCK=block,
        SHARE=max(16, triton.next_power_of_2(heads // groups)),
        TILE=tiling.tile,
        SPLIT=tiling.split,
        AHEAD=tiling.ahead,
        WHOLE=splits == 1,
        NORMED=rotary.query_gain_D is not None,
        num_warps=tiling.warps,
        num_stages=tiling.stages,
        **early(),
    )
    if splits > 1:
        _join[(count, heads)](
            sums,
            stats,
            rows.lengths_N,
            rows.live_N,
            out_NX,
            splits,
            HEADS=heads,
            WIDTH=width,
            SPLIT=tiling.split,
            num_warps=1,
            **early(),
        )


@triton.jit
def places_of(table, start, end, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """Where in a layer's pool, counted in tokens, the tokens from `start` on lie; anywhere from `end` on."""
    at = start + tl.arange(0, TILE)
    blocks = tl.load(table + at // BLOCK, mask=at < end, other=0).to(tl.int64)
    return blocks * BLOCK + at % BLOCK


@triton.jit
def loaded(keys, values, places, seen, group, GROUPS: tl.constexpr, WIDTH: tl.constexpr):
    """Keys and values of the tokens at these places, [TILE, WIDTH] each, and zeros where they are not `seen`."""
    offsets = ((places * GROUPS + group) * WIDTH)[:, None] + tl.arange(0, WIDTH)[None, :]
    k = tl.load(keys + offsets, mask=seen[:, None], other=0.0)
    v = tl.load(values + offsets, mask=seen[:, None], other=0.0)
    return k, v


@triton.jit
def attended(q, k, v, seen, top, mass, total, to_log2):
    """Softmax so far, with one more tile: the highest score, the mass relative to it, the weighted sum of values."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * to_log2
    scores = tl.where(seen, scores, float("-inf"))
    higher = tl.maximum(top, tl.max(scores, 1))
    weights = tl.exp2(scores - higher[:, None])
    shrink = tl.exp2(top - higher)
    mass = mass * shrink + tl.sum(weights, 1)
    total = total * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
    return higher, mass, total


@triton.jit
def _attend(  # noqa: PLR0915 - a kernel is one function
    qkv,
    cosines,
    sines,
    query_gain,
    key_gain,
    keys,
    values,
    tables,
    lengths,
    live,
    out,
    sums,
    stats,
    qkv_stride,
    table_stride,
    splits,
    eps,
    scale,
    HEADS: tl.constexpr,
    GROUPS: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    SHARE: tl.constexpr,
    TILE: tl.constexpr,
    SPLIT: tl.constexpr,
    AHEAD: tl.constexpr,
    WHOLE: tl.constexpr,
    NORMED: tl.constexpr,
    EARLY: tl.constexpr,
):
    group = tl.program_id(0)
    row = tl.program_id(1)
    split = tl.program_id(2)
    position = tl.load(lengths + row)
    last = position // SPLIT
    if (tl.load(live + row) == 0) | (split > last):
        return

    PER_GROUP: tl.constexpr = HEADS // GROUPS
    d = tl.arange(0, WIDTH)
    h = tl.arange(0, SHARE)
    half = d % (WIDTH // 2)
    cosine = tl.load(cosines + position * (WIDTH // 2) + half).to(tl.float32)
    sine = tl.load(sines + position * (WIDTH // 2) + half).to(tl.float32) * tl.where(d < WIDTH // 2, -1.0, 1.0)

    # The first tile is on its way before the product that makes the queries has ended.
    table = tables + row.to(tl.int64) * table_stride
    begin = split * SPLIT
    end = tl.minimum(position, begin + SPLIT)
    t = tl.arange(0, TILE)
    places = places_of(table, begin, end, BLOCK, TILE)
    k_tile, v_tile = loaded(keys, values, places, begin + t < end, group, GROUPS, WIDTH)
    if AHEAD:
        places = places_of(table, begin + TILE, end, BLOCK, TILE)
    follow(EARLY)

    here = qkv + row.to(tl.int64) * qkv_stride
    mine = h[:, None] < PER_GROUP
    one = tl.arange(0, 1)[:, None]
    q = turned(here + (group * PER_GROUP + h)[:, None] * WIDTH, mine, query_gain, cosine, sine, eps, WIDTH, NORMED)
    k = turned(here + (HEADS + group + one) * WIDTH, one < 1, key_gain, cosine, sine, eps, WIDTH, NORMED)
    v = tl.load(here + (HEADS + GROUPS + group + one) * WIDTH + d[None, :])
    newest = split == last
    if newest:
        block = tl.load(table + position // BLOCK).to(tl.int64)
        offset = ((block * BLOCK + position % BLOCK) * GROUPS + group + one) * WIDTH + d[None, :]
        tl.store(keys + offset, k)
        tl.store(values + offset, v)

    # The new token is attended to out of registers; the loop reads what earlier launches stored.
    to_log2 = scale * 1.4426950408889634
    own = tl.sum(q.to(tl.float32) * k.to(tl.float32), 1) * to_log2
    top = tl.where(newest, own, float("-inf"))
    mass = tl.where(newest, 1.0, 0.0) + tl.zeros([SHARE], tl.float32)
    total = tl.where(newest, v.to(tl.float32), 0.0) + tl.zeros([SHARE, WIDTH], tl.float32)
    top, mass, total = attended(q, k_tile, v_tile, (begin + t < end)[None, :], top, mass, total, to_log2)
    for start in range(begin + TILE, end, TILE):
        if not AHEAD:
            places = places_of(table, start, end, BLOCK, TILE)
        k_tile, v_tile = loaded(keys, values, places, start + t < end, group, GROUPS, WIDTH)
        if AHEAD:
            places = places_of(table, start + TILE, end, BLOCK, TILE)
        top, mass, total = attended(q, k_tile, v_tile, (start + t < end)[None, :], top, mass, total, to_log2)

    head = group * PER_GROUP + h
    if WHOLE:
        out_at = out + (row.to(tl.int64) * HEADS + head)[:, None] * WIDTH + d[None, :]
        tl.store(out_at, (total / mass[:, None]).to(out.dtype.element_ty), mask=mine)
    else:
        slot = (row.to(tl.int64) * HEADS + head) * splits + split
        tl.store(sums + slot[:, None] * WIDTH + d[None, :], total, mask=mine)
        tl.store(stats + slot * 2, top, mask=h < PER_GROUP)
        tl.store(stats + slot * 2 + 1, mass, mask=h < PER_GROUP)


@triton.jit
def _join(
    sums,
    stats,
    lengths,
    live,
    out,
    splits,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    SPLIT: tl.constexpr,
    EARLY: tl.constexpr,
):
    follow(EARLY)
    row = tl.program_id(0)
    head = tl.program_id(1)
    if tl.load(live + row) == 0:
        return
    d = tl.arange(0, WIDTH)
    first = (row.to(tl.int64) * HEADS + head) * splits
    count = tl.load(lengths + row) // SPLIT + 1
    highest = tl.load(stats + first * 2)
    for split in range(1, count):
        highest = tl.maximum(highest, tl.load(stats + (first + split) * 2))
    # One after the other: the order of a sum must not depend on how far other rows reach.
    mass = 0.0
    total = tl.zeros([WIDTH], tl.float32)
    for split in range(count):
        share = tl.exp2(tl.load(stats + (first + split) * 2) - highest)
        mass += tl.load(stats + (first + split) * 2 + 1) * share
        total += tl.load(sums + (first + split) * WIDTH + d) * share
    tl.store(out + (row.to(tl.int64) * HEADS + head) * WIDTH + d, (total / mass).to(out.dtype.element_ty))
