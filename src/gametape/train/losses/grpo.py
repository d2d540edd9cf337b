"""GRPO as first published: a mean over each rollout's tokens, then over rollouts. Long rollouts weigh less a token."""

from torch import Tensor

from gametape.train.losses.clipped import clipped_BT, mean_in_rollout_B
from gametape.train.losses.tokens import PolicyTokens, total


def loss(tokens: PolicyTokens, denominator: float | Tensor | None) -> Tensor:
    loss_B = mean_in_rollout_B(clipped_BT(tokens, tokens.log_ratio_BT), tokens.mask_BT)
    return total(loss_B, max(1, len(loss_B)) if denominator is None else denominator)
