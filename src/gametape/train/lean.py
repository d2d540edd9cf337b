"""The pointwise operations of a decoder layer, keeping for backward only what it cannot do without.

Written with ordinary operations a norm keeps three tensors of the size of its input; this keeps the input and a number
a row. The gated unit computes its activation again.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def rms_norm(x: Tensor, weight_E: Tensor, eps: float) -> Tensor:
    """x over its root mean square along the last dimension, times the weight; in float32 or better inside."""
    if x.is_cuda:  # one kernel there, as lean as this
        return functional.rms_norm(x, weight_E.shape, weight_E, eps)
    normed: Tensor = _RmsNorm.apply(x, weight_E, eps)
    return normed


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up."""
    product: Tensor = _Gated.apply(gate, up)
    return product


class _RmsNorm(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_E: Tensor, eps: float) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        scale = torch.linalg.vector_norm(wide, dim=-1, keepdim=True).square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight_E, scale)
        return (wide * scale).to(x.dtype) * weight_E

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight_E, scale = ctx.saved_tensors
        normed = x.to(scale.dtype) * scale
        inner = (grad * weight_E).to(scale.dtype)
        along = torch.linalg.vecdot(inner, normed)[..., None] / x.shape[-1]
        grad_x = torch.addcmul(inner, normed, along, value=-1).mul_(scale)
        grad_weight = normed.mul_(grad).flatten(0, -2).sum(0)
        return grad_x.to(x.dtype), grad_weight.to(weight_E.dtype), None


class _Gated(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return functional.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        grad_up = functional.silu(gate).mul_(grad)
        grad_gate: Tensor = torch.ops.aten.silu_backward(grad * up, gate)
        return grad_gate, grad_up
