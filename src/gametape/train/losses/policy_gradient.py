"""The policy-gradient losses of the GRPO family, the advantages that go with them, and the supervised loss.

All are pure functions over the tokens of B rollouts in rows of T. A rollout whose context was rewritten has several
rows. Everything but the policy's log-probs is a constant.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from gametape.core.errors import BadInput

TensorLike: TypeAlias = Tensor | Sequence[Any] | float
"""A tensor, or what becomes one."""

MAX_LOG_RATIO = 20.0
"""How far a log-ratio goes before it is cut: a ratio that overflows would turn a zero advantage into NaN."""


@dataclass(frozen=True)
class RolloutSums:
    """For each row, sums over all rows of its rollout, in this call or in another: a rollout is averaged as one."""

    tokens_B: Tensor
    """Tokens in the mask."""
    log_ratio_B: Tensor
    """Of their log-ratios, policy to old."""
    log_weight_B: Tensor
    """Of their log-ratios, old to behaviour."""

    @classmethod
    def from_rows(cls, log_ratio_BT: Tensor, log_weight_BT: Tensor, mask_BT: Tensor) -> "RolloutSums":
        """Where every row is a whole rollout."""
        return cls(mask_BT.sum(-1), log_ratio_BT.detach().sum(-1), log_weight_BT.sum(-1))

    def mean_B1(self, sum_B: Tensor) -> Tensor:
        """The mean over a rollout's tokens; 0 if there are none."""
        mean_B: Tensor = sum_B / self.tokens_B.clamp(min=1)
        return mean_B[:, None]


@dataclass(frozen=True)
class PolicyTokens:
    """Everything is 0 outside the mask, whatever stood there before, and has at least 32 bits."""

    logp_BT: Tensor
    log_ratio_BT: Tensor
    """Policy to old, with a gradient."""
    adv_BT: Tensor
    """Times the weight of the token."""
    weight_BT: Tensor
    """Old to behaviour, truncated."""
    mask_BT: Tensor
    rollouts: RolloutSums
    clip_low: float
    clip_high: float


def policy_tokens(
    logp_BT: TensorLike,
    old_logp_BT: TensorLike,
    adv_B: TensorLike,
    mask_BT: TensorLike,
    clip_low: float,
    clip_high: float,
    behaviour_logp_BT: TensorLike | None,
    importance_cap: float,
    rollouts: RolloutSums | None = None,
    weighs_rollouts: bool = False,
) -> PolicyTokens:
    """One bundle, with shapes and bounds checked. Advantages are one for a rollout, [B], or one for a token, [B, T].
    With `weighs_rollouts` all tokens of a rollout have one weight, the geometric mean of theirs."""
    logp_BT = as_floats(logp_BT)
    if logp_BT.dim() != 2:
        raise ValueError(f"log-probs are rollouts x tokens; these have the shape {list(logp_BT.shape)}")
    if not (clip_low >= 0 and clip_high >= 0 and importance_cap > 0):
        raise ValueError("clip bounds are distances from 1, at least 0, and the cap of importance weights is above 0")
    mask_BT = as_mask(mask_BT, logp_BT)
    old_logp_BT = reference_logp(logp_BT, old_logp_BT, mask_BT)
    adv_BT = as_floats(adv_B).to(logp_BT).detach()
    adv_BT = _masked((adv_BT[:, None] if adv_BT.dim() == 1 else adv_BT).expand_as(logp_BT), mask_BT)
    logp_BT = _masked(logp_BT, mask_BT)
    log_ratio_BT, log_weight_BT = log_ratios(logp_BT, old_logp_BT), torch.zeros_like(old_logp_BT)
    if behaviour_logp_BT is not None:
        log_weight_BT = log_ratios(old_logp_BT, reference_logp(logp_BT, behaviour_logp_BT, mask_BT))
    rollouts = rollouts or RolloutSums.from_rows(log_ratio_BT, log_weight_BT, mask_BT)
    if weighs_rollouts:
        log_weight_BT = rollouts.mean_B1(rollouts.log_weight_B).expand_as(log_weight_BT)
    weight_BT = log_weight_BT.exp().clamp(max=importance_cap)
    return PolicyTokens(logp_BT, log_ratio_BT, adv_BT * weight_BT, weight_BT, mask_BT, rollouts, clip_low, clip_high)


def log_ratios(logp: Tensor, other_logp: Tensor) -> Tensor:
    """Of the same tokens under two policies, cut where a ratio would overflow."""
    return (logp - other_logp).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)


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


_LEAST_SPREAD = 1e-4
"""Added to the standard deviation, as TRL does."""


def group_advantages(rewards_G: TensorLike, variant: str = "loo") -> Tensor:
    """One advantage a rollout, for a group in the last dimension; groups of equal size may be stacked before it.

    - `loo`: the reward less the mean of the others, the default;
    - `dr_grpo`: the reward less the mean of all, which is (G - 1) / G of that;
    - `grpo`, `dapo`, `cispo`, `gspo`: the latter over the group's standard deviation, as these were published.

    Equal rewards give exactly 0, and so does a group of one: there is nothing to compare it with.
    """
    variant = resolve_variant(variant)
    rewards_G = as_floats(rewards_G)
    size = rewards_G.shape[-1]
    if size < 2:
        return torch.zeros_like(rewards_G)
    # Seen from the first, equal rewards are exactly 0, and so is their mean, which rounding moves otherwise.
    rewards_G = rewards_G - rewards_G[..., :1]
    centred_G = rewards_G - rewards_G.mean(-1, keepdim=True)
    if variant == "loo":
        return centred_G * (size / (size - 1))
    if variant == "dr_grpo":
        return centred_G
    return centred_G / (rewards_G.std(-1, keepdim=True) + _LEAST_SPREAD)


def clipped_surrogate_BT(tokens: PolicyTokens, log_ratio_BT: Tensor) -> Tensor:
    """PPO's clipped surrogate: the worse of ratio times advantage and the same with the ratio held in
    [1 - clip_low, 1 + clip_high]."""
    ratio_BT = log_ratio_BT.exp()
    held_BT = ratio_BT.clamp(1 - tokens.clip_low, 1 + tokens.clip_high)
    gain_BT: Tensor = (ratio_BT * tokens.adv_BT).minimum(held_BT * tokens.adv_BT)
    return -gain_BT


def rollout_mean(loss_BT: Tensor, rollouts: RolloutSums) -> Tensor:
    """The sum over rows, each over the tokens of its whole rollout: what a mean over each rollout adds up to."""
    mean_B: Tensor = loss_BT.sum(-1) / rollouts.tokens_B.clamp(min=1)
    return mean_B.sum()


def dr_grpo_loss(tokens: PolicyTokens) -> Tensor:
    """Dr.GRPO: every token counts the same, whatever the length of its rollout.

    The sum over tokens is divided by a constant, so neither long failures nor short successes are favoured. With
    leave-one-out advantages this is the default.
    """
    return clipped_surrogate_BT(tokens, tokens.log_ratio_BT).sum()


def grpo_loss(tokens: PolicyTokens) -> Tensor:
    """GRPO as first published: a mean over each rollout's tokens, then over rollouts. A token of a long rollout weighs
    less."""
    return rollout_mean(clipped_surrogate_BT(tokens, tokens.log_ratio_BT), tokens.rollouts)


def dapo_loss(tokens: PolicyTokens) -> Tensor:
    """DAPO: one mean over all tokens of the batch, and a higher bound above than below.

    The room above (0.28 against 0.2) lets unlikely tokens rise, which keeps the policy's entropy.
    """
    return clipped_surrogate_BT(tokens, tokens.log_ratio_BT).sum()


def cispo_loss(tokens: PolicyTokens) -> Tensor:
    """CISPO: the weight of a token is clipped, its gradient never vanishes.

    PPO drops a token whose ratio has left the bounds, often the rare one that matters. Here the ratio, at most
    1 + clip_high, is a constant that weighs a plain policy gradient. There is no bound below, as published: `clip_low`
    has no effect.
    """
    weight_BT = tokens.log_ratio_BT.detach().exp().clamp(max=1 + tokens.clip_high)
    loss_BT: Tensor = -weight_BT * tokens.adv_BT * tokens.logp_BT
    return loss_BT.sum()


def gspo_loss(tokens: PolicyTokens) -> Tensor:
    """GSPO: one ratio a rollout, the geometric mean of its tokens' ratios, because the reward is for the whole rollout.

    Clipping then takes or leaves whole rollouts, so bounds are far narrower than for tokens: 3e-4 and 4e-4 as
    published. This is its form for tokens: the value is the rollout's ratio, the gradient
    goes through each token by itself.

    With one advantage for a rollout that is the same number and the same gradient; with one for each token it credits
    the tokens it is for.
    """
    return rollout_mean(clipped_surrogate_BT(tokens, _rollout_log_ratio_BT(tokens)), tokens.rollouts)


def _rollout_log_ratio_BT(tokens: PolicyTokens) -> Tensor:
    """The same value for all tokens of a rollout, with a gradient through each."""
    rollout_B1 = tokens.rollouts.mean_B1(tokens.rollouts.log_ratio_B)
    return rollout_B1 + tokens.logp_BT - tokens.logp_BT.detach()


@dataclass(frozen=True)
class _LossVariant:
    loss: Callable[[PolicyTokens], Tensor]
    counts_rollouts: bool = False
    """Whether it divides by rollouts, each already a mean over its tokens, and not by rollouts times a length."""
    rollout_ratio: bool = False
    """Whether a rollout has one ratio and one weight, and not each token its own."""
    counts_mask: bool = False
    """Whether it is a mean over tokens, and not over a fixed length for each rollout."""


_VARIANTS: Mapping[Variant, _LossVariant] = {
    "loo": _LossVariant(dr_grpo_loss),
    "dr_grpo": _LossVariant(dr_grpo_loss),
    "grpo": _LossVariant(grpo_loss, counts_rollouts=True),
    "dapo": _LossVariant(dapo_loss, counts_mask=True),
    "cispo": _LossVariant(cispo_loss, counts_mask=True),
    "gspo": _LossVariant(gspo_loss, counts_rollouts=True, rollout_ratio=True),
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
    rollouts: RolloutSums | None = None,
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

    `behaviour_logp_BT` are the log-probs under the weights, or the engine, that sampled the tokens: each token is
    weighed by old / behaviour, at most `importance_cap`; in `gspo` each rollout by the geometric mean of its tokens'.

    Where a rollout has several rows, `rollouts` has the sums over all of them, so that it counts once; a denominator is
    then required.
    """
    member = _VARIANTS[resolve_variant(variant)]
    if rollouts is not None and denominator is None:
        raise ValueError("rows are no longer rollouts, so that they cannot be counted: give a denominator")
    tokens = policy_tokens(
        logp_BT,
        old_logp_BT,
        adv_B,
        mask_BT,
        clip_low,
        clip_high,
        behaviour_logp_BT,
        importance_cap,
        rollouts,
        member.rollout_ratio,
    )
    return normalised_sum(member.loss(tokens), _published(member, tokens) if denominator is None else denominator)


def _published(member: _LossVariant, tokens: PolicyTokens) -> int:
    """What a variant divides by where no constant is given."""
    if member.counts_mask:
        return max(1, int(tokens.mask_BT.sum()))
    return max(1, len(tokens.mask_BT) if member.counts_rollouts else tokens.mask_BT.numel())


@dataclass(frozen=True)
class TokenImportance:
    """What a loss made of the differences between policies."""

    ratio_BT: Tensor
    """Policy to old, as the variant takes it."""
    clipped_BT: Tensor
    """Where the clip bound acts: the gradient is gone, or with `cispo` its weight is held."""
    weight_BT: Tensor
    """Old to behaviour, truncated."""
    truncated_BT: Tensor
    """Where the weight is at its cap."""
    mask_BT: Tensor


@torch.no_grad()  # type: ignore[untyped-decorator]
def token_importance(
    logp_BT: TensorLike,
    old_logp_BT: TensorLike,
    adv_B: TensorLike,
    mask_BT: TensorLike,
    variant: str = "loo",
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    *,
    behaviour_logp_BT: TensorLike | None = None,
    importance_cap: float = 2.0,
    rollouts: RolloutSums | None = None,
) -> TokenImportance:
    """For the arguments of `rl_loss`."""
    variant = resolve_variant(variant)
    per_rollout = _VARIANTS[variant].rollout_ratio
    bounds, sampler = (clip_low, clip_high), (behaviour_logp_BT, importance_cap)
    tokens = policy_tokens(logp_BT, old_logp_BT, adv_B, mask_BT, *bounds, *sampler, rollouts, per_rollout)
    log_ratio_BT = _rollout_log_ratio_BT(tokens) if per_rollout else tokens.log_ratio_BT
    ratio_BT, adv_BT = log_ratio_BT.exp(), tokens.adv_BT
    above_BT, below_BT = ratio_BT > 1 + clip_high, ratio_BT < 1 - clip_low
    clipped_BT = above_BT if variant == "cispo" else (above_BT & (adv_BT > 0)) | (below_BT & (adv_BT < 0))
    truncated_BT = tokens.weight_BT >= importance_cap
    return TokenImportance(ratio_BT, clipped_BT, tokens.weight_BT, truncated_BT, tokens.mask_BT)


def has_rollout_ratio(variant: str) -> bool:
    """Whether a variant has one ratio for a rollout, so that all of its rows are needed for any of them."""
    return _VARIANTS[resolve_variant(variant)].rollout_ratio


def normaliser(variant: str, rollouts: float, length: int, tokens: float | None = None) -> float:
    """The constant to pass as `denominator` when a step samples so many rollouts, with a fixed length for each.

    `dapo` and `cispo` are means over `tokens`, all that were sampled for the step, whatever was filtered afterwards;
    where that is not known, over the fixed length too.
    """
    member = _VARIANTS[resolve_variant(variant)]
    if member.counts_rollouts:
        return float(rollouts)
    return float(rollouts * length if tokens is None or not member.counts_mask else max(1.0, tokens))


def sft_loss(logp_BT: TensorLike, mask_BT: TensorLike, denominator: float | Tensor | None = None) -> Tensor:
    """The negative log-likelihood of the tokens in the mask over `denominator`: how many they are, unless given."""
    logp_BT = as_floats(logp_BT)
    mask_BT = as_mask(mask_BT, logp_BT)
    loss_BT = -logp_BT.where(mask_BT, logp_BT.new_zeros(()))
    return normalised_sum(loss_BT, mask_BT.sum().clamp(min=1) if denominator is None else denominator)
