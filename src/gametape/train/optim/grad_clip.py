"""The joint norm of gradients, and a bound on it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class GradientNorm:
    """The Euclidean norm of all gradients as one vector, before anything was scaled."""

    value: float
    scaled: bool

    @property
    def finite(self) -> bool:
        return math.isfinite(self.value)


def clip_grad_norm(gradients: Iterable[Tensor | None], most: float = math.inf) -> GradientNorm:
    """Scale gradients in place so that their joint norm is at most `most`, and say what it was.

    Gradients that are not finite are left as they are, for the caller to stop at. One term of a loss gets a bound of
    its own when its gradients are taken and clipped apart, and then added to the others.
    """
    if not most > 0:
        raise ValueError(f"the bound of a norm is above 0; this one is {most}")
    there = [gradient for gradient in gradients if gradient is not None]
    value = float(torch.nn.utils.get_total_norm(there)) if there else 0.0
    scaled = math.isfinite(value) and value > most
    if scaled:
        for gradient in there:
            gradient.mul_(most / value)
    return GradientNorm(value, scaled)
