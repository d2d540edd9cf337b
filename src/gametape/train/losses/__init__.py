"""The losses: pure functions over tensors, one file for each stream.

`rl_loss`, `sft_loss` and `ttf_loss` are three streams over tokens. A token may be in several, and each stream has a
normaliser of its own: a constant that the caller knows before anything is filtered.
"""

from gametape.train.losses.distillation import (
    anchor_loss,
    disagreement_weights,
    discounts_after,
    divergence,
    divergence_and_slope,
    effect_weights,
    leaves_teacher,
    prefix_ratios,
    ttf_loss,
    weighed_divergence,
)
from gametape.train.losses.policy_gradient import (
    RolloutSums,
    TokenImportance,
    UnknownVariant,
    Variant,
    group_advantages,
    has_rollout_ratio,
    log_ratios,
    normaliser,
    rl_loss,
    sft_loss,
    token_importance,
)

__all__ = [
    "RolloutSums",
    "TokenImportance",
    "UnknownVariant",
    "Variant",
    "anchor_loss",
    "disagreement_weights",
    "discounts_after",
    "divergence",
    "divergence_and_slope",
    "effect_weights",
    "group_advantages",
    "has_rollout_ratio",
    "leaves_teacher",
    "log_ratios",
    "normaliser",
    "prefix_ratios",
    "rl_loss",
    "sft_loss",
    "token_importance",
    "ttf_loss",
    "weighed_divergence",
]
