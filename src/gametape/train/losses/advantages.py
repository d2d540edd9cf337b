"""How much better a rollout did than the others of its group."""

import torch
from torch import Tensor

from gametape.train.losses.inputs import TensorLike, as_floats
from gametape.train.losses.policy_gradient import resolve_variant

_LEAST_SPREAD = 1e-4
"""Added to the standard deviation, as TRL does."""


def group_advantages(rewards_G: TensorLike, variant: str = "loo") -> Tensor:
    """One advantage a rollout, for a group in the last dimension; groups of equal size may be stacked before it.

    - `loo`: the reward less the mean of the others, the default;
    - `dr_grpo`: the reward less the mean of all, which is (G - 1) / G of that;
    - `grpo`, `dapo`, `cispo`, `gspo`: the latter over the group's standard deviation, as these were published.

    Equal rewards give exactly 0, and so does a group of one: there is nothing to compare it with.
    """
    variant = resolve_variant(variant)
    rewards_G = as_floats(rewards_G)
    size = rewards_G.shape[-1]
    if size < 2:
        return torch.zeros_like(rewards_G)
    # Seen from the first, equal rewards are exactly 0, and so is their mean, which rounding moves otherwise.
    rewards_G = rewards_G - rewards_G[..., :1]
    centred_G = rewards_G - rewards_G.mean(-1, keepdim=True)
    if variant == "loo":
        return centred_G * (size / (size - 1))
    if variant == "dr_grpo":
        return centred_G
    return centred_G / (rewards_G.std(-1, keepdim=True) + _LEAST_SPREAD)
