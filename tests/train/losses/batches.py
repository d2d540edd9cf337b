"""Random batches of tokens, with ratios on both sides of the clip bounds."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    logp: Tensor
    old: Tensor
    adv: Tensor
    mask: Tensor


def random_batch(seed: int, rollouts: int = 5, tokens: int = 7, dtype: torch.dtype = torch.float64) -> Batch:
    rng = torch.Generator().manual_seed(seed)
    logp = -3 * torch.rand(rollouts, tokens, generator=rng, dtype=dtype)
    old = logp + 0.4 * torch.randn(rollouts, tokens, generator=rng, dtype=dtype)
    adv = torch.randn(rollouts, generator=rng, dtype=dtype)
    mask = torch.rand(rollouts, tokens, generator=rng) < 0.7
    mask[:, 0] = True
    return Batch(logp.requires_grad_(), old, adv, mask)


def slope(loss: Tensor, of: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad(loss, of)
    return gradient
