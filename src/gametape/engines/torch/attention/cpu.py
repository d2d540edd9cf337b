"""Attention on a CPU that reads keys and values in place.

Decoding uses our own kernel where it could be compiled (`c_decode`), else torch's. For torch's, sequences are in runs
of neighbouring blocks (see `BlockPool`). Leading blocks that sequences share are read once for all of them; of the
rest, runs at even distances are one strided view, read in one call. The partial results are merged by their
log-sum-exps. Prompts use torch's kernel, a run of the past at a time.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from gametape.engines.torch.attention.block_runs import (
    BlockRun,
    StridedRuns,
    group_strided,
    sequence_runs,
    shared_runs,
)
from gametape.engines.torch.attention.c_decode import CDecode, load_decode_kernels, store_kv
from gametape.engines.torch.attention.interface import AttendFn, SequenceSpan, copy_kv, kv_rows
from gametape.engines.torch.kv_blocks import BlockPool

_flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


def plan(pool: BlockPool, spans: Sequence[SequenceSpan]) -> AttendFn:
    rows_N = kv_rows(pool, spans)
    decodes = [span for span in spans if span.count == 1]
    chunks = [span for span in spans if span.count > 1]
    kernels = load_decode_kernels(pool)
    decode = (CDecode(kernels, pool, decodes) if kernels else TorchDecode(pool, decodes)) if decodes else None
    chunk_runs = [sequence_runs(pool.block_size, at, span.blocks, 0, span.past) for at, span in enumerate(chunks)]
    view = _Views(pool)

    def attend(layer: int, q_NHD: Tensor, k_NGD: Tensor, v_NGD: Tensor) -> Tensor:
        if kernels:
            store_kv(kernels, pool, layer, rows_N, k_NGD, v_NGD)
        else:
            copy_kv(pool, layer, rows_N, k_NGD, v_NGD)
        out_NHD = torch.empty(q_NHD.shape, dtype=q_NHD.dtype)
        if decode:
            decode.attend(layer, q_NHD, out_NHD)
        for span, past in zip(chunks, chunk_runs, strict=True):
            rows = slice(span.start, span.start + span.count)
            out_NHD[rows] = _chunk(view, layer, past, q_NHD[rows], k_NGD[rows], v_NGD[rows])
        return out_NHD

    return attend


class _Views:
    """Keys and values of a layer as [runs, G, tokens, D], without copying."""

    def __init__(self, pool: BlockPool) -> None:
        self._keys, self._values = pool.keys_LBTGD, pool.values_LBTGD
        _, _, _, self._heads, self._dim = pool.keys_LBTGD.shape
        self._row = self._heads * self._dim
        self._layer: int = pool.keys_LBTGD.stride(0)

    def __call__(self, layer: int, runs: int, start: int, step: int, length: int) -> tuple[Tensor, Tensor]:
        size = (runs, self._heads, length, self._dim)
        stride = (step * self._row, self._dim, self._row, 1)
        offset = layer * self._layer + start * self._row
        return self._keys.as_strided(size, stride, offset), self._values.as_strided(size, stride, offset)


class TorchDecode:
    """One new token for each of S sequences."""

    def __init__(self, pool: BlockPool, spans: Sequence[SequenceSpan]) -> None:
        self._view = _Views(pool)
        self._groups = pool.keys_LBTGD.shape[3]
        shared = shared_runs(pool.block_size, spans)
        shared_tokens = [sum(run.length for run in shared if at in run.members) for at in range(len(spans))]
        own = [
            run
            for at, span in enumerate(spans)
            for run in sequence_runs(pool.block_size, at, span.blocks, shared_tokens[at], span.past + 1)
        ]
        self._shared = [(run, torch.tensor(run.members)) for run in shared]
        self._strided = group_strided(own, pool.block_count * pool.block_size)
        self._masks = [_mask(batch, pool.keys_LBTGD.dtype) for batch in self._strided]
        owners = [member for run in shared for member in run.members]
        owners += [run.members[0] for batch in self._strided for run in batch.runs]
        self._index_S: Tensor = torch.tensor([span.start for span in spans])
        self._own_order_P: Tensor = torch.tensor([run.members[0] for batch in self._strided for run in batch.runs])
        self._merge_SK, self._absent_SK = _merge_table(owners, len(spans))

    def attend(self, layer: int, q_NHD: Tensor, out_NHD: Tensor) -> None:
        """Write the rows of these sequences."""
        heads, dim = q_NHD.shape[1:]
        repeats = heads // self._groups
        q_SGRD = q_NHD.index_select(0, self._index_S).view(-1, self._groups, repeats, dim)
        outs, sums = [], []
        for run, members_M in self._shared:
            q_1GMD = q_SGRD.index_select(0, members_M).transpose(0, 1).reshape(1, self._groups, -1, dim)
            out, lse = _flash(q_1GMD, *self._view(layer, 1, run.start, 0, run.length))
            outs.append(out.reshape(self._groups, -1, repeats, dim).transpose(0, 1))
            sums.append(lse.reshape(self._groups, -1, repeats).transpose(0, 1))
        at = 0
        q_PGRD = q_SGRD.index_select(0, self._own_order_P)
        for batch, mask in zip(self._strided, self._masks, strict=True):
            runs = len(batch.runs)
            out, lse = _flash(
                q_PGRD[at : at + runs],
                *self._view(layer, runs, batch.runs[0].start, batch.step, batch.length),
                attn_mask=mask,
            )
            outs.append(out)
            sums.append(lse)
            at += runs
        out_PGRD = torch.cat(outs) if len(outs) > 1 else outs[0]
        if self._merge_SK.shape[1] == 1:
            joined_SGRD = out_PGRD.index_select(0, self._merge_SK[:, 0])
            out_NHD.index_copy_(0, self._index_S, joined_SGRD.reshape(-1, heads, dim))
            return
        lse_SKGR = torch.cat(sums)[self._merge_SK].masked_fill_(self._absent_SK[..., None, None], -torch.inf)
        out_SKGRD = out_PGRD[self._merge_SK]
        weight_SKGR = lse_SKGR.softmax(1).to(out_SKGRD.dtype)
        joined_SGRD = (out_SKGRD * weight_SKGR[..., None]).sum(1)
        out_NHD.index_copy_(0, self._index_S, joined_SGRD.reshape(-1, heads, dim))


def _mask(batch: StridedRuns, dtype: torch.dtype) -> Tensor | None:
    lengths = [run.length for run in batch.runs]
    if min(lengths) == batch.length:
        return None
    beyond_PT = torch.arange(batch.length) >= torch.tensor(lengths)[:, None]
    return torch.zeros(beyond_PT.shape, dtype=dtype).masked_fill_(beyond_PT, -torch.inf)[:, None, None]


def _merge_table(owners: list[int], spans: int) -> tuple[Tensor, Tensor]:
    """Which partial results belong to each sequence, and which entries of the table are padding."""
    results: list[list[int]] = [[] for _ in range(spans)]
    for at, owner in enumerate(owners):
        results[owner].append(at)
    most = max(map(len, results))
    merge = torch.tensor([own + [0] * (most - len(own)) for own in results])
    absent = torch.tensor([[False] * len(own) + [True] * (most - len(own)) for own in results])
    return merge, absent


def _chunk(view: _Views, layer: int, past: Sequence[BlockRun], q_CHD: Tensor, k_CGD: Tensor, v_CGD: Tensor) -> Tensor:
    """Causal attention among several new tokens of one sequence, merged with attention to its past."""
    count, heads, dim = q_CHD.shape
    groups = k_CGD.shape[1]
    repeats = heads // groups
    q_1HCD = q_CHD.transpose(0, 1)[None]
    k_1HCD = k_CGD.repeat_interleave(repeats, 1).transpose(0, 1)[None]
    v_1HCD = v_CGD.repeat_interleave(repeats, 1).transpose(0, 1)[None]
    out, lse = _flash(q_1HCD, k_1HCD, v_1HCD, is_causal=True)
    if not past:
        return out[0].transpose(0, 1)
    outs, sums = [out[0]], [lse[0]]
    q_1GXD = q_1HCD.reshape(1, groups, repeats * count, dim)
    for run in past:
        out, lse = _flash(q_1GXD, *view(layer, 1, run.start, 0, run.length))
        outs.append(out.reshape(heads, count, dim))
        sums.append(lse.reshape(heads, count))
    weight_KHC = torch.stack(sums).softmax(0).to(q_CHD.dtype)
    return (torch.stack(outs) * weight_KHC[..., None]).sum(0).transpose(0, 1)
