"""The operations of a decoder between its matrix products: norms, rotary embedding, gate.

On a CPU in float32 each is one pass of our own kernel, where torch takes several. Types narrower than float32 are
rounded where transformers rounds them.
"""

import ctypes
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from gametape.engines.torch.c_kernels import ADDRESS, FLOAT, NUMBER, compile_kernels


def add_and_norm(hidden_NE: Tensor, more_NE: Tensor | None, gain_E: Tensor, eps: float) -> Tensor:
    """Add `more_NE` to `hidden_NE` in place, and return the sum, normalised."""
    kernels = _kernels(hidden_NE)
    if kernels is None:
        return rms_norm(hidden_NE if more_NE is None else hidden_NE.add_(more_NE), gain_E, eps)
    out_NE = torch.empty_like(hidden_NE)
    more = None if more_NE is None else more_NE.data_ptr()
    kernels.add_and_norm(hidden_NE.data_ptr(), more, gain_E.data_ptr(), eps, *hidden_NE.shape, out_NE.data_ptr())
    return out_NE


def rms_norm(x_NE: Tensor, gain_E: Tensor, eps: float) -> Tensor:
    if x_NE.dtype == torch.float32:
        return functional.rms_norm(x_NE, gain_E.shape, gain_E, eps)
    return functional.rms_norm(x_NE, gain_E.shape, None, eps) * gain_E


def apply_rotary(x_NPD: Tensor, cos_N1D: Tensor, sin_N1D: Tensor) -> Tensor:
    """Rotate heads by their position. `x_NPD` may be strided, and may be overwritten."""
    kernels = _kernels(x_NPD)
    if kernels is not None:
        kernels.turn(x_NPD.data_ptr(), x_NPD.stride(0), cos_N1D.data_ptr(), sin_N1D.data_ptr(), *x_NPD.shape)
        return x_NPD
    rolled_NPD = x_NPD.roll(x_NPD.shape[-1] // 2, -1)
    if x_NPD.dtype == torch.float32:
        return torch.addcmul(x_NPD * cos_N1D, rolled_NPD, sin_N1D)
    return x_NPD * cos_N1D + rolled_NPD * sin_N1D


def silu_gate(gate_up_NP: Tensor) -> Tensor:
    """silu(gate) * up, [N, P / 2]."""
    kernels = _kernels(gate_up_NP)
    if kernels is None:
        gate_NI, up_NI = gate_up_NP.chunk(2, -1)
        return functional.silu(gate_NI).mul_(up_NI)
    rows, width = len(gate_up_NP), gate_up_NP.shape[1] // 2
    out_NI = torch.empty(rows, width)
    kernels.gate(gate_up_NP.data_ptr(), rows, width, out_NI.data_ptr())
    return out_NI


def _kernels(x: Tensor) -> ctypes.CDLL | None:
    return _library() if x.dtype == torch.float32 and x.device.type == "cpu" else None


@cache
def _library() -> ctypes.CDLL | None:
    signatures = {
        "add_and_norm": (ADDRESS, ADDRESS, ADDRESS, FLOAT, NUMBER, NUMBER, ADDRESS),
        "turn": (ADDRESS, NUMBER, ADDRESS, ADDRESS, NUMBER, NUMBER, NUMBER),
        "gate": (ADDRESS, NUMBER, NUMBER, ADDRESS),
    }
    return compile_kernels("elementwise", signatures)
