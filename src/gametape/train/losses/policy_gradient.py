"""The names of the family's members."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from gametape.core.errors import BadInput
from gametape.train.losses.inputs import PolicyTokens, TensorLike, normalised_sum, policy_tokens

Variant = Literal["loo", "dr_grpo", "grpo", "dapo", "cispo", "gspo"]

_ALIASES: dict[str, Variant] = {"leave_one_out": "loo", "rloo": "loo", "drgrpo": "dr_grpo"}


class UnknownVariant(BadInput, ValueError):
    """A name that no variant has; the text lists those there are."""


def resolve_variant(name: str) -> Variant:
    """The variant that a name means, also as papers write it: `Dr.GRPO`, `leave-one-out`."""
    plain = re.sub(r"[\s.\-]+", "_", name.strip().lower())
    known: tuple[Variant, ...] = get_args(Variant)
    for variant in known:
        if variant == _ALIASES.get(plain, plain):
            return variant
    raise UnknownVariant(f"no variant {name!r}; there are {', '.join(known)}")


def clipped_surrogate_BT(tokens: PolicyTokens, log_ratio_BT: Tensor) -> Tensor:
    """The worse of ratio times advantage and the same with the ratio held in [1 - clip_low, 1 + clip_high]."""
    ratio_BT = log_ratio_BT.exp()
    held_BT = ratio_BT.clamp(1 - tokens.clip_low, 1 + tokens.clip_high)
    gain_BT: Tensor = (ratio_BT * tokens.adv_BT).minimum(held_BT * tokens.adv_BT)
    return -gain_BT


def rollout_mean_B(loss_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """A rollout's mean over the tokens that count; 0 if none do."""
    mean_B: Tensor = loss_BT.sum(-1) / mask_BT.sum(-1).clamp(min=1)
    return mean_B


def dr_grpo_loss(tokens: PolicyTokens, denominator: float | Tensor | None) -> Tensor:
    loss_BT = clipped_surrogate_BT(tokens, tokens.log_ratio_BT)
    return normalised_sum(loss_BT, max(1, loss_BT.numel()) if denominator is None else denominator)


def grpo_loss(tokens: PolicyTokens, denominator: float | Tensor | None) -> Tensor:
    loss_B = rollout_mean_B(clipped_surrogate_BT(tokens, tokens.log_ratio_BT), tokens.mask_BT)
    return normalised_sum(loss_B, max(1, len(loss_B)) if denominator is None else denominator)


def dapo_loss(tokens: PolicyTokens, denominator: float | Tensor | None) -> Tensor:
    loss_BT = clipped_surrogate_BT(tokens, tokens.log_ratio_BT)
    return normalised_sum(loss_BT, tokens.mask_BT.sum().clamp(min=1) if denominator is None else denominator)


def cispo_loss(tokens: PolicyTokens, denominator: float | Tensor | None) -> Tensor:
    weight_BT = tokens.log_ratio_BT.detach().exp().clamp(max=1 + tokens.clip_high)
    loss_BT = -weight_BT * tokens.adv_BT * tokens.logp_BT
    return normalised_sum(loss_BT, tokens.mask_BT.sum().clamp(min=1) if denominator is None else denominator)


def gspo_loss(tokens: PolicyTokens, denominator: float | Tensor | None) -> Tensor:
    """In its form for tokens: the value is the rollout's ratio, the gradient goes through each token by itself.

    With one advantage for a rollout that is the same number and the same gradient; with one for each token it credits
    the tokens it is for.
    """
    rollout_B1 = rollout_mean_B(tokens.log_ratio_BT.detach(), tokens.mask_BT)[:, None]
    log_ratio_BT = rollout_B1 + tokens.logp_BT - tokens.logp_BT.detach()
    loss_B = rollout_mean_B(clipped_surrogate_BT(tokens, log_ratio_BT), tokens.mask_BT)
    return normalised_sum(loss_B, max(1, len(loss_B)) if denominator is None else denominator)


@dataclass(frozen=True)
class _LossVariant:
    loss: Callable[[PolicyTokens, float | Tensor | None], Tensor]
    counts_rollouts: bool = False
    """It divides by rollouts, each already a mean over its tokens, and not by rollouts times a length."""


_VARIANTS: Mapping[Variant, _LossVariant] = {
    "loo": _LossVariant(dr_grpo_loss),
    "dr_grpo": _LossVariant(dr_grpo_loss),
    "grpo": _LossVariant(grpo_loss, counts_rollouts=True),
    "dapo": _LossVariant(dapo_loss),
    "cispo": _LossVariant(cispo_loss),
    "gspo": _LossVariant(gspo_loss, counts_rollouts=True),
}


def rl_loss(
    logp_BT: TensorLike,
    old_logp_BT: TensorLike,
    adv_B: TensorLike,
    mask_BT: TensorLike,
    variant: str = "loo",
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    denominator: float | Tensor | None = None,
    *,
    behaviour_logp_BT: TensorLike | None = None,
    importance_cap: float = 2.0,
) -> Tensor:
    """The loss of B rollouts, a scalar whose gradient goes to `logp_BT` where `mask_BT` is true, and nowhere else.

    `logp_BT` are the log-probs of the sampled tokens under the policy that learns, `old_logp_BT` under the one that
    clipping holds it near to. `adv_B` has an advantage for each rollout, or [B, T] one for each token. `clip_low` and
    `clip_high` are distances from a ratio of 1.

    `denominator` is the whole normaliser: what the sum is divided by. It is a constant for a step of training, known
    before rollouts are filtered or split over several backward passes (`normaliser` has it); a count of what is left
    after filtering would give the last rare signal full force. Without one, each variant takes what it was published
    with, counted on this batch: B * T for `loo` and `dr_grpo`, B for `grpo` and `gspo`, whose rollouts are means
    already, and the tokens in the mask for `dapo` and `cispo`.

    Where rollouts come from older weights than `old_logp_BT` does, `behaviour_logp_BT` are their log-probs under the
    weights that sampled them: each token is weighed by old / behaviour, at most `importance_cap`.
    """
    member = _VARIANTS[resolve_variant(variant)]
    tokens = policy_tokens(logp_BT, old_logp_BT, adv_B, mask_BT, clip_low, clip_high, behaviour_logp_BT, importance_cap)
    return member.loss(tokens, denominator)


def normaliser(variant: str, rollouts: int, length: int) -> float:
    """The constant to pass as `denominator` when a step samples so many rollouts, with a fixed length for each."""
    return float(rollouts if _VARIANTS[resolve_variant(variant)].counts_rollouts else rollouts * length)
