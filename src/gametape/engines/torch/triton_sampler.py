"""From hidden states to drawn tokens without leaving the GPU: logits, temperature, top k, top p, draw, stop, count.

The product with the vocabulary also leaves, for every tile of it, the largest logit and the mass of the tile; the draw
then reads those few numbers and one tile of logits. One uniform number per token, made from the request's seed and the
token's position, is looked up in the distribution's running sum, so a request draws the same tokens in any company.
Logits are float32 sums of products of the weights' own type, and are never rounded to it.
"""

# mypy: disable-error-code="import-not-found, no-untyped-def, untyped-decorator"
# Kernels are typed by Triton, when they are compiled.

from dataclasses import dataclass

import triton
import triton.language as tl
from torch import Tensor

from gametape.engines.torch.triton_launch import early, follow
from gametape.engines.torch.triton_linear import Tiling


@dataclass(frozen=True)
class TiledLogits:
    """A batch's logits and, per tile of the vocabulary, their maximum and mass at the row's temperature."""

    logits_NV: Tensor
    tops_NT: Tensor
    masses_NT: Tensor
    tile: int


@dataclass(frozen=True)
class RowSampling:
    """How each row is sampled. Temperature 0 takes the likeliest; `top_k` 0 and `top_p` 1 keep everything."""

    temperatures_N: Tensor
    top_k_N: Tensor
    top_p_N: Tensor
    least_N: Tensor
    """Filled by `apply_top_k_top_p`: logits over temperature below this are not drawn."""
    seeds_N: Tensor
    stops_NS: Tensor
    """Tokens that end the row; -1 fills up."""
    limits_N: Tensor
    """How many tokens a row may sample before the host reads them."""


@dataclass(frozen=True)
class RowProgress:
    """The state of each row, which `draw_tokens` advances."""

    tokens_N: Tensor
    """The token to be read next."""
    lengths_N: Tensor
    live_N: Tensor
    drawn_N: Tensor
    ids_NS: Tensor
    """The tokens sampled since the host last read them; their log-probabilities are below."""
    logprobs_NS: Tensor


def embed(tokens_N: Tensor, embedding_VE: Tensor, out_NE: Tensor) -> None:
    _embed[(tokens_N.shape[0],)](
        tokens_N,
        embedding_VE,
        out_NE,
        WIDTH=embedding_VE.shape[1],
        PADDED=triton.next_power_of_2(embedding_VE.shape[1]),
        **early(),
    )


def compute_logits(
    hidden_NE: Tensor, head_VE: Tensor, sampling: RowSampling, tiled: TiledLogits, rows: int, tiling: Tiling
) -> None:
    """Compute the logits of the first `rows` rows, and maximum and mass of each tile of `tiling.columns` columns."""
    vocabulary, depth = head_VE.shape
    _weigh[(triton.cdiv(rows, tiling.rows), triton.cdiv(vocabulary, tiling.columns))](
        hidden_NE,
        head_VE,
        sampling.temperatures_N,
        tiled.logits_NV,
        tiled.tops_NT,
        tiled.masses_NT,
        rows,
        VOCABULARY=vocabulary,
        DEPTH=depth,
        TILES=tiled.tops_NT.shape[1],
        ROWS_TILE=tiling.rows,
        COLUMNS_TILE=tiling.columns,
        DEPTH_TILE=tiling.depth,
        num_warps=tiling.warps,
        num_stages=tiling.stages,
        **early(),
    )


def apply_top_k_top_p(sampling: RowSampling, tiled: TiledLogits, rows: int) -> None:
    """Find, for rows with top k or top p, the least logit that may be sampled, and compute their tiles again.

    Top k comes first; top p is a share of what it left. Logits equal to the least are all kept.
    """
    _restrict[(rows,)](
        sampling.temperatures_N,
        sampling.top_k_N,
        sampling.top_p_N,
        sampling.least_N,
        tiled.logits_NV,
        tiled.tops_NT,
        tiled.masses_NT,
        VOCABULARY=tiled.logits_NV.shape[1],
        TILES=tiled.tops_NT.shape[1],
        TILE=tiled.tile,
        CHUNK=max(1, 4096 // tiled.tile),
        num_warps=8,
        **early(),
    )


def draw_tokens(sampling: RowSampling, tiled: TiledLogits, progress: RowProgress, rows: int) -> None:
    """Sample a token for every live row, store it with its log-probability, and end the row if it is the last."""
    _draw[(rows,)](
        sampling.temperatures_N,
        sampling.least_N,
        sampling.seeds_N,
        sampling.stops_NS,
        sampling.limits_N,
        tiled.logits_NV,
        tiled.tops_NT,
        tiled.masses_NT,
        progress.tokens_N,
        progress.lengths_N,
        progress.live_N,
        progress.drawn_N,
        progress.ids_NS,
        progress.logprobs_NS,
        VOCABULARY=tiled.logits_NV.shape[1],
        TILES=tiled.tops_NT.shape[1],
        TILES_PADDED=triton.next_power_of_2(tiled.tops_NT.shape[1]),
        TILE=tiled.tile,
        STOPS=sampling.stops_NS.shape[1],
        STEPS=progress.ids_NS.shape[1],
        num_warps=4,
        **early(),
    )


@triton.jit
def _embed(tokens, embedding, out, WIDTH: tl.constexpr, PADDED: tl.constexpr, EARLY: tl.constexpr):
    follow(EARLY)
    row = tl.program_id(0)
    e = tl.arange(0, PADDED)
    token = tl.load(tokens + row).to(tl.int64)
    tl.store(out + row * WIDTH + e, tl.load(embedding + token * WIDTH + e, mask=e < WIDTH), mask=e < WIDTH)


@triton.jit
def _heat(temperature):
    """What logits are multiplied with; a greedy row's log-probabilities are the model's own."""
    return 1.0 / tl.where(temperature > 0, temperature, 1.0)


@triton.jit
def _weigh(
    hidden,
    head,
    temperatures,
    logits,
    tops,
    masses,
    rows,
    VOCABULARY: tl.constexpr,
    DEPTH: tl.constexpr,
    TILES: tl.constexpr,
    ROWS_TILE: tl.constexpr,
    COLUMNS_TILE: tl.constexpr,
    DEPTH_TILE: tl.constexpr,
    EARLY: tl.constexpr,
):
    follow(EARLY)
    m = tl.program_id(0) * ROWS_TILE + tl.arange(0, ROWS_TILE)
    n = tl.program_id(1) * COLUMNS_TILE + tl.arange(0, COLUMNS_TILE)
    total = tl.zeros([ROWS_TILE, COLUMNS_TILE], tl.float32)
    for start in tl.range(0, DEPTH, DEPTH_TILE):
        e = start + tl.arange(0, DEPTH_TILE)
        inputs = tl.load(hidden + m[:, None] * DEPTH + e[None, :], mask=e[None, :] < DEPTH, other=0.0)
        inside = (n[None, :] < VOCABULARY) & (e[:, None] < DEPTH)
        weights = tl.load(head + n[None, :].to(tl.int64) * DEPTH + e[:, None], mask=inside, other=0.0)
        total = tl.dot(inputs, weights, total, input_precision="ieee")
    there = m < rows
    inside = there[:, None] & (n[None, :] < VOCABULARY)
    tl.store(logits + m[:, None].to(tl.int64) * VOCABULARY + n[None, :], total, mask=inside)
    heat = _heat(tl.load(temperatures + m, mask=there, other=1.0))
    hot = tl.where(n[None, :] < VOCABULARY, total * heat[:, None], float("-inf"))
    top = tl.max(hot, 1)
    tl.store(tops + m * TILES + tl.program_id(1), top, mask=there)
    tl.store(masses + m * TILES + tl.program_id(1), tl.sum(tl.exp(hot - top[:, None]), 1), mask=there)


@triton.jit
def _uniform(seed, position):
    """The number in [0, 1) that `sampler.uniform` makes (SplitMix64), to float32."""
    state = seed.to(tl.uint64) + (position + 1).to(tl.uint64) * 0x9E3779B97F4A7C15
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB
    state = state ^ (state >> 31)
    return (state >> 40).to(tl.float32) * 5.960464477539063e-08


@triton.jit
def _ordered(value):
    """An integer that sorts as the float does."""
    bits = value.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _above(logits, heat, floor, ceiling, least, COUNTED: tl.constexpr, VOCABULARY: tl.constexpr, SPAN: tl.constexpr):
    """How many logits are at least `least` and `floor`, or, if not COUNTED, the mass of them under `ceiling`."""
    total = tl.zeros([SPAN], tl.float32)
    for start in tl.range(0, VOCABULARY, SPAN):
        v = start + tl.arange(0, SPAN)
        hot = tl.load(logits + v, mask=v < VOCABULARY, other=float("-inf")) * heat
        key = _ordered(hot)
        kept = (key >= least) & (key >= floor) & (v < VOCABULARY)
        if COUNTED:
            total += tl.where(kept, 1.0, 0.0)
        else:
            total += tl.where(kept, tl.exp(hot - ceiling), 0.0)
    return tl.sum(total, 0)


@triton.jit
def _restrict(
    temperatures,
    top_k,
    top_p,
    least,
    logits,
    tops,
    masses,
    VOCABULARY: tl.constexpr,
    TILES: tl.constexpr,
    TILE: tl.constexpr,
    CHUNK: tl.constexpr,
    EARLY: tl.constexpr,
):
    follow(EARLY)
    row = tl.program_id(0)
    temperature = tl.load(temperatures + row)
    k = tl.load(top_k + row)
    p = tl.load(top_p + row)
    k = tl.where(k < VOCABULARY, k, 0)
    if (temperature <= 0) | ((k <= 0) & (p >= 1.0)):
        tl.store(least + row, float("-inf"))
        return
    heat = _heat(temperature)
    mine = logits + row.to(tl.int64) * VOCABULARY
    SPAN: tl.constexpr = CHUNK * TILE
    ceiling = float("-inf")
    for start in tl.range(0, VOCABULARY, SPAN):
        v = start + tl.arange(0, SPAN)
        ceiling = tl.maximum(ceiling, tl.max(tl.load(mine + v, mask=v < VOCABULARY, other=float("-inf")) * heat, 0))

    # Bisection over the floats themselves, in their order: exact after 33 halvings.
    beyond = _ordered(ceiling).to(tl.int64) + 1
    floor = tl.full([], -0x7FFFFFFF, tl.int64)
    if k > 0:
        high = beyond
        for _ in tl.range(33):
            middle = (floor + high) >> 1
            enough = _above(mine, heat, -0x7FFFFFFF, ceiling, middle, True, VOCABULARY, SPAN) >= k
            floor = tl.where(enough, middle, floor)
            high = tl.where(enough, high, middle)
    if p < 1.0:
        wanted = p * _above(mine, heat, floor, ceiling, floor, False, VOCABULARY, SPAN)
        low = floor
        high = beyond
        for _ in tl.range(33):
            middle = (low + high) >> 1
            enough = _above(mine, heat, floor, ceiling, middle, False, VOCABULARY, SPAN) >= wanted
            low = tl.where(enough, middle, low)
            high = tl.where(enough, high, middle)
        floor = low
    bits = floor.to(tl.int32)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    bound = bits.to(tl.float32, bitcast=True)
    tl.store(least + row, bound)
    for first in tl.range(0, TILES, CHUNK):
        tile = first + tl.arange(0, CHUNK)
        v = tile[:, None] * TILE + tl.arange(0, TILE)[None, :]
        hot = tl.load(mine + v, mask=v < VOCABULARY, other=float("-inf")) * heat
        hot = tl.where(hot >= bound, hot, float("-inf"))
        top = tl.max(hot, 1)
        mass = tl.sum(tl.exp(hot - tl.where(top > float("-inf"), top, 0.0)[:, None]), 1)
        tl.store(tops + row * TILES + tile, top, mask=tile < TILES)
        tl.store(masses + row * TILES + tile, mass, mask=tile < TILES)


@triton.jit
def _draw(
    temperatures,
    least,
    seeds,
    stops,
    limits,
    logits,
    tops,
    masses,
    tokens,
    lengths,
    live,
    drawn,
    ids,
    logprobs,
    VOCABULARY: tl.constexpr,
    TILES: tl.constexpr,
    TILES_PADDED: tl.constexpr,
    TILE: tl.constexpr,
    STOPS: tl.constexpr,
    STEPS: tl.constexpr,
    EARLY: tl.constexpr,
):
    follow(EARLY)
    row = tl.program_id(0)
    if tl.load(live + row) == 0:
        return
    temperature = tl.load(temperatures + row)
    greedy = temperature <= 0
    heat = _heat(temperature)
    position = tl.load(lengths + row) + 1

    t = tl.arange(0, TILES_PADDED)
    top = tl.load(tops + row * TILES + t, mask=t < TILES, other=float("-inf"))
    mass = tl.load(masses + row * TILES + t, mask=t < TILES, other=0.0)
    highest = tl.max(top, 0)
    weight = mass * tl.exp(top - highest)
    total = tl.sum(weight, 0)
    goal = _uniform(tl.load(seeds + row), position) * total
    tile = tl.sum((tl.cumsum(weight, 0) <= goal).to(tl.int32), 0)
    tile = tl.minimum(tile, tl.max(tl.where(weight > 0, t, 0), 0))
    tile = tl.where(greedy, tl.argmax(top, 0), tile)

    i = tl.arange(0, TILE)
    v = tile * TILE + i
    hot = tl.load(logits + row.to(tl.int64) * VOCABULARY + v, mask=v < VOCABULARY, other=float("-inf")) * heat
    hot = tl.where(hot >= tl.load(least + row), hot, float("-inf"))
    share = tl.exp(hot - highest)
    rest = goal - tl.sum(tl.where(t < tile, weight, 0.0), 0)
    chosen = tl.sum((tl.cumsum(share, 0) <= rest).to(tl.int32), 0)
    chosen = tl.minimum(chosen, tl.max(tl.where(share > 0, i, 0), 0))
    chosen = tl.where(greedy, tl.argmax(hot, 0), chosen)
    token = tile * TILE + chosen
    logprob = tl.sum(tl.where(i == chosen, hot, 0.0), 0) - highest - tl.log(total)

    count = tl.load(drawn + row)
    tl.store(ids + row * STEPS + count, token)
    tl.store(logprobs + row * STEPS + count, logprob)
    stopped = tl.sum((tl.load(stops + row * STOPS + tl.arange(0, STOPS)) == token).to(tl.int32), 0) > 0
    tl.store(tokens + row, token)
    tl.store(lengths + row, position)
    tl.store(drawn + row, count + 1)
    tl.store(live + row, tl.where(stopped | (count + 1 >= tl.load(limits + row)), 0, 1))
