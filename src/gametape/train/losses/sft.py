"""Supervised fine-tuning: make the tokens of good rollouts likelier. Rejection sampling uses it on its own rollouts."""

from torch import Tensor

from gametape.train.losses.inputs import TensorLike, as_floats, as_mask, normalised_sum


def sft_loss(logp_BT: TensorLike, mask_BT: TensorLike, denominator: float | Tensor | None = None) -> Tensor:
    """The negative log-likelihood of the tokens in the mask over `denominator`: how many they are, unless given."""
    logp_BT = as_floats(logp_BT)
    mask_BT = as_mask(mask_BT, logp_BT)
    loss_BT = -logp_BT.where(mask_BT, logp_BT.new_zeros(()))
    return normalised_sum(loss_BT, mask_BT.sum().clamp(min=1) if denominator is None else denominator)
