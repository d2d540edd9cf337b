"""GSPO: one ratio a rollout, the geometric mean of its tokens' ratios, because the reward is for the whole rollout.

Clipping then takes or leaves whole rollouts, so bounds are far narrower than for tokens: 3e-4 and 4e-4 as published.
"""

from torch import Tensor

from gametape.train.losses.clipped import clipped_BT, mean_in_rollout_B
from gametape.train.losses.tokens import PolicyTokens, total


def loss(tokens: PolicyTokens, denominator: float | Tensor | None) -> Tensor:
    """In its form for tokens: the value is the rollout's ratio, the gradient goes through each token by itself.

    With one advantage for a rollout that is the same number and the same gradient; with one for each token it credits
    the tokens it is for.
    """
    rollout_B1 = mean_in_rollout_B(tokens.log_ratio_BT.detach(), tokens.mask_BT)[:, None]
    log_ratio_BT = rollout_B1 + tokens.logp_BT - tokens.logp_BT.detach()
    loss_B = mean_in_rollout_B(clipped_BT(tokens, log_ratio_BT), tokens.mask_BT)
    return total(loss_B, max(1, len(loss_B)) if denominator is None else denominator)
