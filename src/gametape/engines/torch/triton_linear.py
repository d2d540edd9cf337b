"""Matrix products of one decode step, each with what follows it: bias, gate or residual sum; and the norm before.

With a hidden size of a few hundred, a step is bound by launches and by intermediates that go through memory, not by
arithmetic: seven launches a layer instead of two dozen. (A norm inside the product costs more than it saves: the input
then goes through registers on its way to the tensor cores.) Rounding follows transformers: a norm is rounded before its
gain, a projection before it is added to the residual stream, the activated gate before it meets the other half.

A product with few columns and much depth keeps few programs busy. It can be cut along its depth (`project_parts`); the
norm behind it adds the parts.

Row buffers must be padded to a whole number of row tiles: rows past the batch are computed and never read. The order in
which a row's products are summed depends on the number of parts alone, so a row's result depends neither on its
neighbours nor on the tiling.
"""

# mypy: disable-error-code="import-not-found, no-untyped-def, untyped-decorator"
# Kernels are typed by Triton, when they are compiled.

from dataclasses import dataclass

import triton
import triton.language as tl
from torch import Tensor

from gametape.engines.torch.triton_launch import early, fetch_ahead, follow

_FETCHED_BYTES = 1 << 24
"""Weights of at most this size are fetched ahead whole: they fit into the cache beside what is in use."""


@dataclass(frozen=True)
class Tiling:
    """Rows, columns and depth of a tile, and the warps and stages of a program."""

    rows: int
    columns: int
    depth: int = 64
    warps: int = 4
    stages: int = 4


@dataclass(frozen=True)
class Parts:
    """A product [N, E] in parts that are still to be added up, in order, and its bias."""

    sums_SNE: Tensor
    bias_E: Tensor | None


def normalise(x_NE: Tensor, gain_E: Tensor, eps: float, out_NE: Tensor, rows: int, more: Parts | None = None) -> None:
    """Root-mean-square norm of the first `rows` rows, after the product in `more` is added to them in place."""
    _normalise[(rows,)](
        x_NE,
        gain_E,
        out_NE,
        more.sums_SNE if more else None,
        more.bias_E if more else None,
        eps,
        more.sums_SNE.stride(0) if more else 0,
        WIDTH=gain_E.shape[0],
        PADDED=triton.next_power_of_2(gain_E.shape[0]),
        PARTS=len(more.sums_SNE) if more else 0,
        BIASED=more is not None and more.bias_E is not None,
        num_warps=min(8, max(4, gain_E.shape[0] // 512)),
        **early(),
    )


def project(
    x_NE: Tensor,
    weight_FE: Tensor,
    out_NF: Tensor,
    rows: int,
    tiling: Tiling,
    bias_F: Tensor | None = None,
    residual_NF: Tensor | None = None,
) -> None:
    """`out = residual + x weight^T + bias` for the first `rows` rows; `out` may be `residual`."""
    columns, depth = weight_FE.shape
    _project[(triton.cdiv(rows, tiling.rows), triton.cdiv(columns, tiling.columns))](
        x_NE,
        weight_FE,
        bias_F,
        residual_NF,
        out_NF,
        0,
        COLUMNS=columns,
        DEPTH=depth,
        PARTS=1,
        BIASED=bias_F is not None,
        ADDED=residual_NF is not None,
        ROWS_TILE=tiling.rows,
        COLUMNS_TILE=tiling.columns,
        DEPTH_TILE=tiling.depth,
        LINES=_lines(weight_FE),
        num_warps=tiling.warps,
        num_stages=tiling.stages,
        **early(),
    )


def project_parts(x_NE: Tensor, weight_FE: Tensor, sums_SNF: Tensor, rows: int, tiling: Tiling) -> None:
    """`x weight^T` for the first `rows` rows, in parts of the depth, each a multiple of 128 deep, not rounded."""
    columns, depth = weight_FE.shape
    parts = len(sums_SNF)
    _project[(triton.cdiv(rows, tiling.rows), triton.cdiv(columns, tiling.columns), parts)](
        x_NE,
        weight_FE,
        None,
        None,
        sums_SNF,
        sums_SNF.stride(0),
        COLUMNS=columns,
        DEPTH=depth,
        PARTS=parts,
        BIASED=False,
        ADDED=False,
        ROWS_TILE=tiling.rows,
        COLUMNS_TILE=tiling.columns,
        DEPTH_TILE=tiling.depth,
        LINES=_lines(weight_FE),
        num_warps=tiling.warps,
        num_stages=tiling.stages,
        **early(),
    )


def gate(
    x_NE: Tensor, weight_FE: Tensor, out_NI: Tensor, rows: int, tiling: Tiling, bias_F: Tensor | None = None
) -> None:
    """`out = silu(x gate^T) * (x up^T)`; `weight_FE` holds the rows of the gate, then those of up."""
    _gate[(triton.cdiv(rows, tiling.rows), triton.cdiv(weight_FE.shape[0] // 2, tiling.columns))](
        x_NE,
        weight_FE,
        bias_F,
        out_NI,
        COLUMNS=weight_FE.shape[0] // 2,
        DEPTH=weight_FE.shape[1],
        BIASED=bias_F is not None,
        ROWS_TILE=tiling.rows,
        COLUMNS_TILE=tiling.columns,
        DEPTH_TILE=tiling.depth,
        LINES=_lines(weight_FE),
        num_warps=tiling.warps,
        num_stages=tiling.stages,
        **early(),
    )


def _lines(weight_FE: Tensor) -> int:
    """How many lines of 64 weights a column's program fetches ahead: all, or the first of weights that would drive each
    other out of the cache."""
    lines: int = triton.next_power_of_2(triton.cdiv(weight_FE.shape[1], 64))
    return lines if weight_FE.nbytes <= _FETCHED_BYTES else min(lines, 4)


@triton.jit
def _normalise(
    x,
    gain,
    out,
    sums,
    bias,
    eps,
    part_stride,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    PARTS: tl.constexpr,
    BIASED: tl.constexpr,
    EARLY: tl.constexpr,
):
    dtype: tl.constexpr = out.dtype.element_ty
    row = tl.program_id(0)
    e = tl.arange(0, PADDED)
    inside = e < WIDTH
    gains = tl.load(gain + e, mask=inside, other=0.0).to(tl.float32)
    follow(EARLY)
    wide = tl.load(x + row * WIDTH + e, mask=inside, other=0.0).to(tl.float32)
    if PARTS > 0:
        more = tl.zeros([PADDED], tl.float32)
        for part in tl.static_range(PARTS):
            more += tl.load(sums + part * part_stride.to(tl.int64) + row * WIDTH + e, mask=inside, other=0.0)
        if BIASED:
            more += tl.load(bias + e, mask=inside, other=0.0).to(tl.float32)
        total = (wide + more.to(dtype).to(tl.float32)).to(dtype)
        tl.store(x + row * WIDTH + e, total, mask=inside)
        wide = total.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, 0) / WIDTH + eps)
    normed = ((wide * scale).to(dtype).to(tl.float32) * gains).to(dtype)
    tl.store(out + row * WIDTH + e, normed, mask=inside)


@triton.jit
def _inputs(x, m, e, DEPTH: tl.constexpr):
    return tl.load(x + m[:, None] * DEPTH + e[None, :], mask=e[None, :] < DEPTH, other=0.0)


@triton.jit
def _weights(weight, n, e, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    inside = (n[None, :] < COLUMNS) & (e[:, None] < DEPTH)
    return tl.load(weight + n[None, :].to(tl.int64) * DEPTH + e[:, None], mask=inside, other=0.0)


@triton.jit
def _fetch_weights(
    weight, n, begin, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, LINES: tl.constexpr, EARLY: tl.constexpr
):
    """One program of those that share a tile of weights fetches it while the kernel before still runs."""
    if EARLY and tl.program_id(0) == 0:
        line = begin + tl.arange(0, LINES)[None, :] * 64
        row = tl.minimum(n, COLUMNS - 1)[:, None].to(tl.int64)
        fetch_ahead(weight + row * DEPTH + tl.minimum(line, DEPTH - 1), EARLY)


@triton.jit
def _project(
    x,
    weight,
    bias,
    residual,
    out,
    part_stride,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    PARTS: tl.constexpr,
    BIASED: tl.constexpr,
    ADDED: tl.constexpr,
    ROWS_TILE: tl.constexpr,
    COLUMNS_TILE: tl.constexpr,
    DEPTH_TILE: tl.constexpr,
    LINES: tl.constexpr,
    EARLY: tl.constexpr,
):
    m = tl.program_id(0) * ROWS_TILE + tl.arange(0, ROWS_TILE)
    n = tl.program_id(1) * COLUMNS_TILE + tl.arange(0, COLUMNS_TILE)
    # A whole product has bounds that the compiler knows; those of a part, known too, end behind the last weight.
    PART_DEPTH: tl.constexpr = DEPTH if PARTS == 1 else ((DEPTH + 127) // 128 + PARTS - 1) // PARTS * 128
    begin = 0
    if PARTS > 1:
        begin = tl.program_id(2) * PART_DEPTH
    _fetch_weights(weight, n, begin, COLUMNS, DEPTH, LINES, EARLY)
    follow(EARLY)
    total = tl.zeros([ROWS_TILE, COLUMNS_TILE], tl.float32)
    for start in tl.range(0, PART_DEPTH, DEPTH_TILE):
        e = begin + start + tl.arange(0, DEPTH_TILE)
        inputs = _inputs(x, m, e, DEPTH)
        total = tl.dot(inputs, _weights(weight, n, e, COLUMNS, DEPTH), total, input_precision="ieee")
    inside = n[None, :] < COLUMNS
    if BIASED:
        total += tl.load(bias + n, mask=n < COLUMNS, other=0.0).to(tl.float32)[None, :]
    total = total.to(out.dtype.element_ty)
    at = m[:, None] * COLUMNS + n[None, :]
    if PARTS > 1:
        at += tl.program_id(2) * part_stride
    if ADDED:
        before = tl.load(residual + at, mask=inside, other=0.0)
        total = (before.to(tl.float32) + total.to(tl.float32)).to(out.dtype.element_ty)
    tl.store(out + at, total, mask=inside)


@triton.jit
def _gate(
    x,
    weight,
    bias,
    out,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    BIASED: tl.constexpr,
    ROWS_TILE: tl.constexpr,
    COLUMNS_TILE: tl.constexpr,
    DEPTH_TILE: tl.constexpr,
    LINES: tl.constexpr,
    EARLY: tl.constexpr,
):
    dtype: tl.constexpr = out.dtype.element_ty
    m = tl.program_id(0) * ROWS_TILE + tl.arange(0, ROWS_TILE)
    n = tl.program_id(1) * COLUMNS_TILE + tl.arange(0, COLUMNS_TILE)
    _fetch_weights(weight, n, 0, COLUMNS, DEPTH, LINES, EARLY)
    _fetch_weights(weight + COLUMNS * DEPTH, n, 0, COLUMNS, DEPTH, LINES, EARLY)
    follow(EARLY)
    gates = tl.zeros([ROWS_TILE, COLUMNS_TILE], tl.float32)
    ups = tl.zeros([ROWS_TILE, COLUMNS_TILE], tl.float32)
    for start in tl.range(0, DEPTH, DEPTH_TILE):
        e = start + tl.arange(0, DEPTH_TILE)
        inputs = _inputs(x, m, e, DEPTH)
        gates = tl.dot(inputs, _weights(weight, n, e, COLUMNS, DEPTH), gates, input_precision="ieee")
        ups_weight = _weights(weight + COLUMNS * DEPTH, n, e, COLUMNS, DEPTH)
        ups = tl.dot(inputs, ups_weight, ups, input_precision="ieee")
    if BIASED:
        gates += tl.load(bias + n, mask=n < COLUMNS, other=0.0).to(tl.float32)[None, :]
        ups += tl.load(bias + COLUMNS + n, mask=n < COLUMNS, other=0.0).to(tl.float32)[None, :]
    gates = gates.to(dtype).to(tl.float32)
    gates = (gates / (1.0 + tl.exp(-gates))).to(dtype).to(tl.float32)
    product = (gates * ups.to(dtype).to(tl.float32)).to(dtype)
    tl.store(out + m[:, None] * COLUMNS + n[None, :], product, mask=n[None, :] < COLUMNS)
