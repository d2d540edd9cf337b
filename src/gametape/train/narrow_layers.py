"""Layers that compute in fewer bits than their weights have, in a process that has all of the weights: each product
casts its weight, which compiled layers do on the way. Nothing is gathered, and no second set of weights is kept."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class NarrowLinear(nn.Linear):  # type: ignore[misc]
    """In the dtype of its input."""

    def forward(self, x: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return functional.linear(x, self.weight.to(x.dtype), bias)


def narrow_layers(network: nn.Module, dtype: torch.dtype) -> bool:
    """Have a network compute in `dtype` from its embeddings on. False, and nothing changes, where it has parts of which
    nobody knows here how they compute."""
    parts = [part for part in network.modules() if any(True for _ in part.parameters(recurse=False))]
    if not all(type(part) is nn.Linear or _rounds(part) for part in parts):
        return False
    for part in parts:
        if type(part) is nn.Linear:
            part.__class__ = NarrowLinear
        else:
            part.register_forward_hook(_rounded_to(dtype))
    return True


def _rounds(part: nn.Module) -> bool:
    """Whether it is enough to round what it gives out."""
    return type(part) is nn.Embedding or type(part).__name__.endswith("RMSNorm")


def _rounded_to(dtype: torch.dtype) -> Any:
    def hook(_part: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        return output.to(dtype)

    return hook
