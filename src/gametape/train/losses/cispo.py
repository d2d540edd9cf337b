"""CISPO: the weight of a token is clipped, its gradient never vanishes.

PPO drops a token whose ratio has left the bounds, often the rare one that matters. Here the ratio, at most
1 + clip_high, is a constant that weighs a plain policy gradient. There is no bound below, as published: `clip_low` has
no effect.
"""

from torch import Tensor

from gametape.train.losses.tokens import PolicyTokens, total


def loss(tokens: PolicyTokens, denominator: float | Tensor | None) -> Tensor:
    weight_BT = tokens.log_ratio_BT.detach().exp().clamp(max=1 + tokens.clip_high)
    loss_BT = -weight_BT * tokens.adv_BT * tokens.logp_BT
    return total(loss_BT, tokens.mask_BT.sum().clamp(min=1) if denominator is None else denominator)
