"""The losses: pure functions over tensors, one variant a file.

`rl_loss`, `sft_loss` and `ttf_loss` are three streams over tokens. A token may be in several, and each stream has a
normaliser of its own: a constant that the caller knows before anything is filtered.
"""

from gametape.train.losses.advantages import group_advantages
from gametape.train.losses.anchor import anchor_loss
from gametape.train.losses.divergence import divergence
from gametape.train.losses.policy import normaliser, rl_loss
from gametape.train.losses.sft import sft_loss
from gametape.train.losses.span import disagreement_weights, effect_weights, prefix_ratios
from gametape.train.losses.ttf import ttf_loss
from gametape.train.losses.variant import UnknownVariant, Variant

__all__ = [
    "UnknownVariant",
    "Variant",
    "anchor_loss",
    "disagreement_weights",
    "divergence",
    "effect_weights",
    "group_advantages",
    "normaliser",
    "prefix_ratios",
    "rl_loss",
    "sft_loss",
    "ttf_loss",
]
