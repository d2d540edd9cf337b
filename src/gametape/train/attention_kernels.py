"""The fused attention kernels of torch, called so that the log-sum-exp comes out and a merged one can go back in.

All shapes are [batch, heads, length, depth]; the log-sum-exp is [batch, heads, length]; scores are scaled by the root
of the depth. A mask is [batch, 1, 1, keys] and added to the scores.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_ops: Any = torch.ops.aten
_BLOCK = 32
"""The kernel for CUDA that takes masks pads its log-sum-exps to whole blocks of queries, with infinity."""


def forward_of(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp."""
    if q.device.type == "cpu":
        out, lse = _ops._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=mask)
    elif _flash(q, mask):
        out, lse, *_ = _ops._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)
    else:
        out, lse, *_ = _ops._scaled_dot_product_efficient_attention(q, k, v, _spread(mask, q), True, 0.0, causal)
    return out, lse[..., : q.shape[2]]


def backward_of(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, mask: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v; `out` and `lse` are those of the whole softmax, of which these keys are a part."""
    if q.device.type == "cpu":
        call = _ops._scaled_dot_product_flash_attention_for_cpu_backward
        grad_q, grad_k, grad_v = call(grad, q, k, v, out, lse, 0.0, causal, attn_mask=mask)
        return grad_q, grad_k, grad_v
    unused = torch.zeros(2, dtype=torch.uint64, device=q.device)  # the random numbers of a dropout that there is not
    if _flash(q, mask):
        call = _ops._scaled_dot_product_flash_attention_backward
        lengths = (None, None, q.shape[2], k.shape[2])
        grad_q, grad_k, grad_v = call(grad, q, k, v, out, lse.contiguous(), *lengths, 0.0, causal, unused, unused)
        return grad_q, grad_k, grad_v
    call = _ops._scaled_dot_product_efficient_attention_backward
    lse = functional.pad(lse, (0, -lse.shape[2] % _BLOCK), value=float("inf")).contiguous()
    wanted = [True, True, True, False]
    bias = _spread(mask, q)
    out = out.transpose(1, 2).contiguous().transpose(1, 2)  # in half precision it is read as forward lays it out
    grad_q, grad_k, grad_v, _ = call(grad, q, k, v, bias, out, lse, unused, unused, 0.0, wanted, causal)
    return grad_q, grad_k, grad_v


def _flash(q: Tensor, mask: Tensor | None) -> bool:
    """Whether the fastest kernel of CUDA can be used: half precision, no mask, a depth it knows."""
    return mask is None and q.dtype in {torch.bfloat16, torch.float16} and q.shape[-1] % 8 == 0 and q.shape[-1] <= 256


def _spread(mask: Tensor | None, q: Tensor) -> Tensor | None:
    return None if mask is None else mask.expand(-1, q.shape[1], q.shape[2], -1)
