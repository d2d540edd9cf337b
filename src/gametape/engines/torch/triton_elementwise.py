"""What a packed forward does between its matrix products, one kernel for each stretch: norm, rotation and append, gate.

Prompts have thousands of rows, so the products themselves are the library's. Rounding is where transformers has it.
"""

# mypy: disable-error-code="import-not-found, no-untyped-def, untyped-decorator"
# Kernels are typed by Triton, when they are compiled.

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor


@dataclass(frozen=True)
class HeadTurn:
    """What becomes of the queries and keys of a packed batch: cosines and signed sines per row, and gains where heads
    are normalised."""

    cosines_ND: Tensor
    sines_ND: Tensor
    query_gain_D: Tensor | None
    key_gain_D: Tensor | None
    eps: float


def add_and_normalise(x_NE: Tensor, more_NE: Tensor | None, gain_E: Tensor, eps: float) -> Tensor:
    """Add `more_NE` to `x_NE` in place, and return the sum, normalised."""
    out_NE = torch.empty_like(x_NE)
    width = gain_E.shape[0]
    padded = triton.next_power_of_2(width)
    _add_and_normalise[(len(x_NE),)](
        x_NE,
        more_NE,
        gain_E,
        out_NE,
        eps,
        WIDTH=width,
        PADDED=padded,
        ADDED=more_NE is not None,
        num_warps=min(8, max(1, padded // 512)),
    )
    return out_NE


def turn_and_store(
    packed_NX: Tensor, turn: HeadTurn, places_N: Tensor, keys_BTGD: Tensor, values_BTGD: Tensor, heads: int
) -> Tensor:
    """The queries [N, heads, D], turned. Turned keys and values go to their places in a layer's pool.

    `packed_NX` holds, side by side, every query head, every key head, every value head.
    """
    groups, width = keys_BTGD.shape[2:]
    q_NHD = packed_NX.new_empty(len(packed_NX), heads, width)
    _turn_and_store[(len(packed_NX),)](
        packed_NX,
        turn.cosines_ND,
        turn.sines_ND,
        turn.query_gain_D,
        turn.key_gain_D,
        places_N,
        keys_BTGD,
        values_BTGD,
        q_NHD,
        turn.eps,
        HEADS=heads,
        GROUPS=groups,
        WIDTH=width,
        HEADS_PADDED=triton.next_power_of_2(heads),
        GROUPS_PADDED=triton.next_power_of_2(groups),
        NORMED=turn.query_gain_D is not None,
        num_warps=4,
    )
    return q_NHD


def gate_pairs(gate_up_NP: Tensor) -> Tensor:
    """silu(gate) * up, [N, P / 2]."""
    width = gate_up_NP.shape[1] // 2
    out_NI = gate_up_NP.new_empty(len(gate_up_NP), width)
    _gate_pairs[(len(gate_up_NP), triton.cdiv(width, 1024))](gate_up_NP, out_NI, WIDTH=width, TILE=1024, num_warps=4)
    return out_NI


@triton.jit
def _add_and_normalise(x, more, gain, out, eps, WIDTH: tl.constexpr, PADDED: tl.constexpr, ADDED: tl.constexpr):
    dtype: tl.constexpr = out.dtype.element_ty
    e = tl.arange(0, PADDED)
    inside = e < WIDTH
    at = tl.program_id(0).to(tl.int64) * WIDTH + e
    wide = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    if ADDED:
        total = (wide + tl.load(more + at, mask=inside, other=0.0).to(tl.float32)).to(dtype)
        tl.store(x + at, total, mask=inside)
        wide = total.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, 0) / WIDTH + eps)
    gains = tl.load(gain + e, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + at, ((wide * scale).to(dtype).to(tl.float32) * gains).to(dtype), mask=inside)


@triton.jit
def turned(at, there, gain, cosine, sine, eps, WIDTH: tl.constexpr, NORMED: tl.constexpr):
    """Heads of a row, [heads, WIDTH], normalised if they are to be and turned by their position."""
    dtype: tl.constexpr = at.dtype.element_ty
    d = tl.arange(0, WIDTH)
    crossed = tl.where(d < WIDTH // 2, d + WIDTH // 2, d - WIDTH // 2)
    straight = tl.load(at + d[None, :], mask=there, other=0.0).to(tl.float32)
    across = tl.load(at + crossed[None, :], mask=there, other=0.0).to(tl.float32)
    if NORMED:
        scale = tl.rsqrt(tl.sum(straight * straight, 1) / WIDTH + eps)[:, None]
        straight = (straight * scale).to(dtype).to(tl.float32) * tl.load(gain + d).to(tl.float32)[None, :]
        across = (across * scale).to(dtype).to(tl.float32) * tl.load(gain + crossed).to(tl.float32)[None, :]
        straight = straight.to(dtype).to(tl.float32)
        across = across.to(dtype).to(tl.float32)
    straight = (straight * cosine[None, :]).to(dtype).to(tl.float32)
    across = (across * sine[None, :]).to(dtype).to(tl.float32)
    return (straight + across).to(dtype)


@triton.jit
def _turn_and_store(
    packed,
    cosines,
    sines,
    query_gain,
    key_gain,
    places,
    keys,
    values,
    queries,
    eps,
    HEADS: tl.constexpr,
    GROUPS: tl.constexpr,
    WIDTH: tl.constexpr,
    HEADS_PADDED: tl.constexpr,
    GROUPS_PADDED: tl.constexpr,
    NORMED: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, WIDTH)
    cosine = tl.load(cosines + row * WIDTH + d).to(tl.float32)
    sine = tl.load(sines + row * WIDTH + d).to(tl.float32)
    here = packed + row * ((HEADS + 2 * GROUPS) * WIDTH)

    h = tl.arange(0, HEADS_PADDED)[:, None]
    q = turned(here + h * WIDTH, h < HEADS, query_gain, cosine, sine, eps, WIDTH, NORMED)
    tl.store(queries + (row * HEADS + h) * WIDTH + d[None, :], q, mask=h < HEADS)

    g = tl.arange(0, GROUPS_PADDED)[:, None]
    k = turned(here + (HEADS + g) * WIDTH, g < GROUPS, key_gain, cosine, sine, eps, WIDTH, NORMED)
    v = tl.load(here + (HEADS + GROUPS + g) * WIDTH + d[None, :], mask=g < GROUPS, other=0.0)
    place = (tl.load(places + row).to(tl.int64) * GROUPS + g) * WIDTH + d[None, :]
    tl.store(keys + place, k, mask=g < GROUPS)
    tl.store(values + place, v, mask=g < GROUPS)


@triton.jit
def _gate_pairs(pairs, out, WIDTH: tl.constexpr, TILE: tl.constexpr):
    dtype: tl.constexpr = out.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * TILE + tl.arange(0, TILE)
    gates = tl.load(pairs + row * 2 * WIDTH + i, mask=i < WIDTH, other=0.0).to(tl.float32)
    ups = tl.load(pairs + row * 2 * WIDTH + WIDTH + i, mask=i < WIDTH, other=0.0).to(tl.float32)
    gates = (gates / (1.0 + tl.exp(-gates))).to(dtype).to(tl.float32)
    tl.store(out + row * WIDTH + i, (gates * ups).to(dtype), mask=i < WIDTH)
