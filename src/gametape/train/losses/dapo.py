"""DAPO: one mean over all tokens of the batch, and a higher bound above than below.

The room above (0.28 against 0.2) lets unlikely tokens rise, which keeps the policy's entropy.
"""

from torch import Tensor

from gametape.train.losses.clipped import clipped_BT
from gametape.train.losses.tokens import PolicyTokens, total


def loss(tokens: PolicyTokens, denominator: float | Tensor | None) -> Tensor:
    loss_BT = clipped_BT(tokens, tokens.log_ratio_BT)
    return total(loss_BT, tokens.mask_BT.sum().clamp(min=1) if denominator is None else denominator)
