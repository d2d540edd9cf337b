"""PPO's clipped surrogate, which half of the family shares."""

from torch import Tensor

from gametape.train.losses.tokens import PolicyTokens


def clipped_BT(tokens: PolicyTokens, log_ratio_BT: Tensor) -> Tensor:
    """The worse of ratio times advantage and the same with the ratio held in [1 - clip_low, 1 + clip_high]."""
    ratio_BT = log_ratio_BT.exp()
    held_BT = ratio_BT.clamp(1 - tokens.clip_low, 1 + tokens.clip_high)
    gain_BT: Tensor = (ratio_BT * tokens.adv_BT).minimum(held_BT * tokens.adv_BT)
    return -gain_BT


def mean_in_rollout_B(loss_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """A rollout's mean over the tokens that count; 0 if none do."""
    mean_B: Tensor = loss_BT.sum(-1) / mask_BT.sum(-1).clamp(min=1)
    return mean_B
