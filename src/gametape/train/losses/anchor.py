"""The anchor: turns that are no target stay where the policy started.

Distillation at one turn moves the weights that all turns share. This holds the others.
"""

from torch import Tensor

from gametape.train.losses.tokens import Numbers, as_floats, as_mask, beside, total


def anchor_loss(
    logp_BT: Numbers, start_logp_BT: Numbers, mask_BT: Numbers, denominator: float | Tensor | None = None
) -> Tensor:
    """The divergence from the start on the tokens in the mask, over `denominator`: how many they are, unless given.

    From the sampled tokens alone, so no logits are needed: start / policy - 1 - log(start / policy), which is never
    negative. Its mean over the policy's own tokens is KL(policy || start), the mean of its gradient that of
    KL(start || policy).
    """
    logp_BT = as_floats(logp_BT)
    mask_BT = as_mask(mask_BT, logp_BT)
    gap_BT = beside(logp_BT, start_logp_BT, mask_BT) - logp_BT.where(mask_BT, logp_BT.new_zeros(()))
    loss_BT = gap_BT.expm1() - gap_BT
    return total(loss_BT, mask_BT.sum().clamp(min=1) if denominator is None else denominator)
