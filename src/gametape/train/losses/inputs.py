"""What a policy loss sees of a batch: the tokens of B rollouts in rows of T, with everything but the policy fixed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

TensorLike: TypeAlias = Tensor | Sequence[Any] | float
"""A tensor, or what becomes one."""

MAX_LOG_RATIO = 20.0
"""How far a log-ratio goes before it is cut: a ratio that overflows would turn a zero advantage into NaN."""


@dataclass(frozen=True)
class PolicyTokens:
    """Everything is 0 outside the mask, whatever stood there before, and has at least 32 bits."""

    logp_BT: Tensor
    old_logp_BT: Tensor
    adv_BT: Tensor
    """Times the weight of the token, where it was sampled by another policy than the old one."""
    mask_BT: Tensor
    clip_low: float
    clip_high: float

    @property
    def log_ratio_BT(self) -> Tensor:
        return (self.logp_BT - self.old_logp_BT).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)


def policy_tokens(
    logp_BT: TensorLike,
    old_logp_BT: TensorLike,
    adv_B: TensorLike,
    mask_BT: TensorLike,
    clip_low: float,
    clip_high: float,
    behaviour_logp_BT: TensorLike | None,
    importance_cap: float,
) -> PolicyTokens:
    """One bundle, with shapes and bounds checked. Advantages are one for a rollout, [B], or one for a token, [B, T]."""
    logp_BT = as_floats(logp_BT)
    if logp_BT.dim() != 2:
        raise ValueError(f"log-probs are rollouts x tokens; these have the shape {list(logp_BT.shape)}")
    if not (clip_low >= 0 and clip_high >= 0 and importance_cap > 0):
        raise ValueError("clip bounds are distances from 1, at least 0, and the cap of importance weights is above 0")
    mask_BT = as_mask(mask_BT, logp_BT)
    old_logp_BT = reference_logp(logp_BT, old_logp_BT, mask_BT)
    adv_BT = as_floats(adv_B).to(logp_BT).detach()
    adv_BT = _masked((adv_BT[:, None] if adv_BT.dim() == 1 else adv_BT).expand_as(logp_BT), mask_BT)
    if behaviour_logp_BT is not None:
        stale_BT = (old_logp_BT - reference_logp(logp_BT, behaviour_logp_BT, mask_BT)).clamp(max=MAX_LOG_RATIO)
        adv_BT = adv_BT * stale_BT.exp().clamp(max=importance_cap)
    return PolicyTokens(_masked(logp_BT, mask_BT), old_logp_BT, adv_BT, mask_BT, clip_low, clip_high)


def as_floats(numbers: TensorLike) -> Tensor:
    """With at least 32 bits: half precision loses what log-probs differ by."""
    tensor: Tensor = torch.as_tensor(numbers)
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def as_mask(mask_BT: TensorLike, like_BT: Tensor) -> Tensor:
    """True where a token counts. Any number but 0 is true."""
    mask: Tensor = torch.as_tensor(mask_BT, device=like_BT.device) != 0
    if mask.shape != like_BT.shape:
        raise ValueError(f"the mask is {list(mask.shape)}, the log-probs are {list(like_BT.shape)}")
    return mask


def reference_logp(logp_BT: Tensor, other_BT: TensorLike, mask_BT: Tensor) -> Tensor:
    """Log-probs of the same tokens under another policy: no gradient, and 0 outside the mask."""
    other_BT = as_floats(other_BT).to(logp_BT).detach()
    if other_BT.shape != logp_BT.shape:
        raise ValueError(f"log-probs of one batch differ in shape: {list(other_BT.shape)}, {list(logp_BT.shape)}")
    return _masked(other_BT, mask_BT)


def normalised_sum(loss_BT: Tensor, denominator: float | Tensor) -> Tensor:
    """The sum over a constant."""
    if not denominator > 0:
        raise ValueError(f"a denominator is above 0; this one is {denominator}")
    return loss_BT.sum() / denominator


def _masked(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Chosen, not multiplied: what stands outside the mask may be infinite, and gets a gradient of exactly 0."""
    return torch.where(mask_BT, values_BT, torch.zeros_like(values_BT))
