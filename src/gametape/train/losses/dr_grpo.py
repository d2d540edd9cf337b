"""Dr.GRPO: every token counts the same, whatever the length of its rollout.

The sum over tokens is divided by a constant, so neither long failures nor short successes are favoured. With
leave-one-out advantages this is the default.
"""

from torch import Tensor

from gametape.train.losses.clipped import clipped_BT
from gametape.train.losses.tokens import PolicyTokens, total


def loss(tokens: PolicyTokens, denominator: float | Tensor | None) -> Tensor:
    loss_BT = clipped_BT(tokens, tokens.log_ratio_BT)
    return total(loss_BT, max(1, loss_BT.numel()) if denominator is None else denominator)
