"""cuDNN's attention for spans of one length, which on recent GPUs is faster than FlashAttention's kernel for spans of
any length. It is taken where it is found to agree with that one, and to be faster, on the device at hand."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor

from gametape.train.attention_plan import VarlenCall, equal_spans

_log = logging.getLogger(__name__)
_ops: Any = torch.ops.aten
_FIRST_CAPABILITY = (9, 0)
_WHOLE = 1024
"""cuDNN makes a plan for each shape. A shape is likely to come back where several spans have one length, or where one
has a multiple of this many rows, as one that fills its window has."""
_CHECKED, _TIMED = 128, 16384
"""Rows of the spans that kernels are compared on, and of all spans that they are timed on."""
_LENGTHS = 256, 8192
"""Kernels are timed for powers of two from the one to the other: which is faster depends on how long spans are."""
_TOLERANCE = 0.02
"""Of the norm of a difference between two kernels in 16 bits, relative."""
_ROUNDS = 5

Kernel: TypeAlias = tuple[Callable[..., tuple[Tensor, Tensor]], Callable[..., list[Tensor]]]
"""Forward and backward, as in `varlen_attention`."""


def chosen_kernel(q_SHD: Tensor, k_KGD: Tensor, call: VarlenCall, usual: Kernel) -> Kernel:
    """What computes this call, `usual` where nothing is known to be better."""
    if not call.spans or (call.spans == 1 and (call.most_queries % _WHOLE or call.most_keys % _WHOLE)):
        return usual
    heads = Heads(q_SHD.device, q_SHD.dtype, q_SHD.shape[1], k_KGD.shape[1], q_SHD.shape[2], call.causal)
    shortest, longest = _LENGTHS
    return best_of(heads, min(longest, max(shortest, 1 << (call.most_keys - 1).bit_length())), usual)


@cache
def best_of(heads: "Heads", length: int, usual: Kernel) -> Kernel:
    """Timed once for each kind of heads and length of spans."""
    times = {kernel: _seconds(heads, length, kernel) for kernel in (usual, *_dense_kernels(heads, usual))}
    best = min(times, key=lambda kernel: times[kernel])
    name = "FlashAttention" if best == usual else "cuDNN"
    _log.info("attention of spans of one length, about %s, is %s's for %s", length, name, heads)
    return best


@cache
def _dense_kernels(heads: "Heads", usual: Kernel) -> tuple[Kernel, ...]:
    """Those of cuDNN that take such heads and agree with the usual one."""
    if not torch.backends.cudnn.is_available() or torch.cuda.get_device_capability(heads.device) < _FIRST_CAPABILITY:
        return ()
    found: list[Kernel] = []
    for repeats in (False, True) if heads.queries > heads.keys else (False,):
        dense = DenseAttention(repeats)
        kernel = dense.forward, dense.backward
        try:
            if heads.differ(kernel, usual) <= _TOLERANCE:
                found.append(kernel)
        except RuntimeError as error:  # cuDNN refuses what it has no plan for
            _log.info("cuDNN's attention does not take %s: %s", heads, error)
    return tuple(found)


@dataclass(frozen=True)
class DenseAttention:
    """`repeats`: key heads are repeated for the query heads that share them, where the kernel has no groups."""

    repeats: bool

    def forward(self, q_SHD: Tensor, k_KGD: Tensor, v_KGD: Tensor, call: VarlenCall) -> tuple[Tensor, Tensor]:
        q_BHSD, k_BHKD, v_BHKD = self._heads(q_SHD, k_KGD, v_KGD, call)
        given = q_BHSD, k_BHKD, v_BHKD, None, True, 0.0, call.causal, False
        out_BHSD, lse_BHS1, *_ = _ops._scaled_dot_product_cudnn_attention(*given)
        return _rows(out_BHSD), lse_BHS1.reshape(out_BHSD.shape[:3]).transpose(0, 1).flatten(1)

    def backward(
        self,
        grad_SHD: Tensor,
        out_SHD: Tensor,
        lse_HS: Tensor,
        q_SHD: Tensor,
        k_KGD: Tensor,
        v_KGD: Tensor,
        call: VarlenCall,
    ) -> list[Tensor]:
        """`out` and `lse` are those of the whole softmax, of which these keys are a part."""
        inputs = self._heads(q_SHD, k_KGD, v_KGD, call)
        grad_BHSD, out_BHSD = (_by_span(one, call.spans) for one in (grad_SHD, out_SHD))
        lse_BHS1 = lse_HS.unflatten(1, (call.spans, -1)).transpose(0, 1).contiguous()[..., None]
        unused = torch.empty((), dtype=torch.int64, device=q_SHD.device)  # the random state of dropout, which is off
        ends = grad_BHSD, *inputs, out_BHSD, lse_BHS1, unused, unused, None, None, None
        sizes = call.most_queries, call.most_keys, 0.0, call.causal
        grads = _ops._scaled_dot_product_cudnn_attention_backward(*ends, *sizes)
        grad_q_SHD, *grad_keys = (_rows(one) for one in grads)
        groups = k_KGD.shape[1]
        return [grad_q_SHD, *(one if one.shape[1] == groups else _summed(one, groups) for one in grad_keys)]

    def _heads(self, q_SHD: Tensor, k_KGD: Tensor, v_KGD: Tensor, call: VarlenCall) -> tuple[Tensor, Tensor, Tensor]:
        repeats = q_SHD.shape[1] // k_KGD.shape[1] if self.repeats else 1
        k_KHD, v_KHD = (one if repeats == 1 else one.repeat_interleave(repeats, 1) for one in (k_KGD, v_KGD))
        q_BHSD, k_BHKD, v_BHKD = (_by_span(one, call.spans) for one in (q_SHD, k_KHD, v_KHD))
        return q_BHSD, k_BHKD, v_BHKD


def _by_span(rows_SHD: Tensor, spans: int) -> Tensor:
    """[B x S, H, D] as [B, H, S, D], without a copy."""
    return rows_SHD.unflatten(0, (spans, -1)).transpose(1, 2)


def _rows(split_BHSD: Tensor) -> Tensor:
    """The reverse."""
    return split_BHSD.transpose(1, 2).flatten(0, 1)


def _summed(grad_KHD: Tensor, groups: int) -> Tensor:
    """Over the query heads that share a key head."""
    return grad_KHD.unflatten(1, (groups, -1)).sum(2)


@dataclass(frozen=True)
class Heads:
    """A kind of heads, of which there are random ones to try kernels on."""

    device: torch.device
    dtype: torch.dtype
    queries: int
    keys: int
    depth: int
    causal: bool

    def inputs(self, spans: int, length: int) -> tuple[list[Tensor], VarlenCall]:
        rng = torch.Generator(self.device).manual_seed(0)
        sizes = [self.queries, self.keys, self.keys, self.queries, self.queries]
        rows = spans * length
        made = [torch.randn(rows, size, self.depth, generator=rng, device=self.device) for size in sizes]
        return [one.to(self.dtype) for one in made], equal_spans(spans, length, self.causal, self.device)

    def differ(self, kernel: Kernel, usual: Kernel) -> float:
        """The largest relative difference of outputs, log-sum-exps and gradients; these also where the keys are only a
        part of what a softmax is over."""
        (q, k, v, grad, other), call = self.inputs(2, _CHECKED)
        (out, lse), (usual_out, usual_lse) = kernel[0](q, k, v, call), usual[0](q, k, v, call)
        pairs = [(out, usual_out), (lse, usual_lse)]
        for merged, wider in ((usual_out, usual_lse), (usual_out.lerp(other, 0.5), usual_lse + 0.7)):
            ends = grad, merged, wider, q, k, v, call
            pairs += zip(kernel[1](*ends), usual[1](*ends), strict=True)
        worst = [(one.float() - two.float()).norm() / two.float().norm() for one, two in pairs]
        largest = float(torch.stack(worst).max())
        return largest if largest == largest else float("inf")  # noqa: PLR0124 - not a number


def _seconds(heads: Heads, length: int, kernel: Kernel) -> float:
    """Of a forward and a backward: the best of some."""
    (q, k, v, grad, _), call = heads.inputs(_TIMED // length, length)
    found = []
    for _ in range(_ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        out, lse = kernel[0](q, k, v, call)
        kernel[1](grad, out, lse, q, k, v, call)
        end.record()
        end.synchronize()
        found.append(start.elapsed_time(end))
    return float(min(found))
