"""The policy gradient with sparse rewards: one signature for the whole family."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from gametape.train.losses import cispo, dapo, dr_grpo, grpo, gspo
from gametape.train.losses.tokens import Numbers, PolicyTokens, gather_tokens
from gametape.train.losses.variant import Variant, variant_named


@dataclass(frozen=True)
class _Member:
    loss: Callable[[PolicyTokens, float | Tensor | None], Tensor]
    counts_rollouts: bool = False
    """It divides by rollouts, each already a mean over its tokens, and not by rollouts times a length."""


_MEMBERS: Mapping[Variant, _Member] = {
    "loo": _Member(dr_grpo.loss),
    "dr_grpo": _Member(dr_grpo.loss),
    "grpo": _Member(grpo.loss, counts_rollouts=True),
    "dapo": _Member(dapo.loss),
    "cispo": _Member(cispo.loss),
    "gspo": _Member(gspo.loss, counts_rollouts=True),
}


def rl_loss(
    logp_BT: Numbers,
    old_logp_BT: Numbers,
    adv_B: Numbers,
    mask_BT: Numbers,
    variant: str = "loo",
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    denominator: float | Tensor | None = None,
    *,
    behaviour_logp_BT: Numbers | None = None,
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
    member = _MEMBERS[variant_named(variant)]
    tokens = gather_tokens(logp_BT, old_logp_BT, adv_B, mask_BT, clip_low, clip_high, behaviour_logp_BT, importance_cap)
    return member.loss(tokens, denominator)


def normaliser(variant: str, rollouts: int, length: int) -> float:
    """The constant to pass as `denominator` when a step samples so many rollouts, with a fixed length for each."""
    return float(rollouts if _MEMBERS[variant_named(variant)].counts_rollouts else rollouts * length)
