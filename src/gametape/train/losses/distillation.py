"""How far a student's next-token distributions are from a teacher's, over the whole vocabulary."""

from typing import Any

import torch
from torch import Tensor

from gametape.train.losses.policy_gradient import (
    MAX_LOG_RATIO,
    TensorLike,
    as_floats,
    as_mask,
    normalised_sum,
    reference_logp,
)

_IMPOSSIBLE = -1e4
"""The log-prob of a token whose logit is minus infinity: far enough, and its difference from itself is 0."""
_PLACES = 16


def divergence(student_logits_SV: TensorLike, teacher_logits_SV: TensorLike, beta: float = 0.7) -> Tensor:
    """beta * KL(teacher || student) + (1 - beta) * KL(student || teacher) at each of S places, in nats, never negative.

    The gradient goes to the student alone. It is the exact derivative written out, so that a teacher equal to the
    student gives exactly 0, where differentiating step by step leaves the rounding of a softmax.
    """
    if not 0 <= beta <= 1:
        raise ValueError(f"beta lies between 0 and 1; this one is {beta}")
    student_logits_SV = as_floats(student_logits_SV)
    teacher_logits_SV = as_floats(teacher_logits_SV).to(student_logits_SV).detach()
    if student_logits_SV.dim() < 2 or student_logits_SV.shape != teacher_logits_SV.shape:
        shapes = f"{list(student_logits_SV.shape)} and {list(teacher_logits_SV.shape)}"
        raise ValueError(f"student and teacher score the same places of one vocabulary; these are {shapes}")
    divergence_S: Tensor = _Divergence.apply(student_logits_SV, teacher_logits_SV, beta)
    return divergence_S


class _Divergence(torch.autograd.Function):  # type: ignore[misc]
    """A few places at a time, so that beside the logits only the derivative is as large as they are."""

    @staticmethod
    def forward(ctx: Any, student_logits_SV: Tensor, teacher_logits_SV: Tensor, beta: float) -> Tensor:
        divergence_S = student_logits_SV.new_empty(student_logits_SV.shape[:-1])
        slope_SV = torch.empty_like(student_logits_SV) if ctx.needs_input_grad[0] else None
        for at in range(0, len(student_logits_SV), _PLACES):
            few = slice(at, at + _PLACES)
            wanted = slope_SV is not None
            divergence_S[few], found_SV = divergence_and_slope(
                student_logits_SV[few], teacher_logits_SV[few], beta, wanted
            )
            if slope_SV is not None:
                slope_SV[few] = found_SV
        ctx.save_for_backward(slope_SV)
        return divergence_S

    @staticmethod
    def backward(ctx: Any, slope_S: Tensor) -> tuple[Tensor, None, None]:
        (slope_SV,) = ctx.saved_tensors
        return slope_S[..., None] * slope_SV, None, None


def divergence_and_slope(
    student_logits_SV: Tensor, teacher_logits_SV: Tensor, beta: float, slope: bool = True
) -> tuple[Tensor, Tensor]:
    """The `divergence`, and its derivative by the student's logits; nothing in its place where it is not wanted."""
    student_SV = student_logits_SV.log_softmax(-1).clamp_(min=_IMPOSSIBLE)
    teacher_SV = teacher_logits_SV.log_softmax(-1).clamp_(min=_IMPOSSIBLE)
    p_student_SV, p_teacher_SV = student_SV.exp(), teacher_SV.exp()
    gap_SV = student_SV.sub_(teacher_SV)
    forward_S1 = -(p_teacher_SV * gap_SV).sum(-1, keepdim=True)
    reverse_S1 = (p_student_SV * gap_SV).sum(-1, keepdim=True)
    divergence_S = (beta * forward_S1 + (1 - beta) * reverse_S1)[..., 0].clamp(min=0)
    if not slope:
        return divergence_S, divergence_S.new_empty(0)
    reverse_SV = gap_SV.sub_(reverse_S1).mul_(p_student_SV)
    return divergence_S, p_student_SV.sub_(p_teacher_SV).mul_(beta).add_(reverse_SV, alpha=1 - beta)


def disagreement_weights(
    student_logits_SV: TensorLike,
    teacher_logits_SV: TensorLike,
    ids_S: TensorLike,
    gamma: float = 0.5,
    action_S: TensorLike | None = None,
) -> Tensor:
    """1 up to the first token where the student left the teacher, and gamma times less after each such token.

    From there on the teacher reads a prefix that it would not have written. The student has left the teacher where
    their likeliest tokens differ and the sampled one, `ids_S`, is not the teacher's. With `action_S`, tokens outside it
    neither count nor are counted.
    """
    student_SV, teacher_SV = as_floats(student_logits_SV), as_floats(teacher_logits_SV)
    ids: Tensor = torch.as_tensor(ids_S, device=student_SV.device)
    left_S = leaves_teacher(student_SV, teacher_SV, ids)
    if action_S is None:
        return discounts_after(left_S, gamma, student_SV.dtype)
    action = as_mask(action_S, left_S)
    return discounts_after(left_S & action, gamma, student_SV.dtype).masked_fill(~action, 0.0)


def leaves_teacher(student_logits_SV: Tensor, teacher_logits_SV: Tensor, ids_S: Tensor) -> Tensor:
    """Where the likeliest tokens differ and the sampled one is not the teacher's."""
    choice_S = teacher_logits_SV.argmax(-1)
    return (student_logits_SV.argmax(-1) != choice_S) & (ids_S != choice_S)


def discounts_after(left_S: Tensor, gamma: float, dtype: torch.dtype) -> Tensor:
    """1 up to the first place that is true, and gamma times less after each."""
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma lies between 0 and 1; this one is {gamma}")
    before_S = left_S.cumsum(-1) - left_S.long()
    return torch.pow(gamma, before_S.to(dtype))


def prefix_ratios(logp_S: TensorLike, behaviour_logp_S: TensorLike, cap: float = 2.0) -> Tensor:
    """At each token the importance ratio of the span's tokens before it, at most `cap`; 1 at the first.

    The token itself is left out: the divergence at its position is already a mean over the vocabulary.
    """
    if not cap > 0:
        raise ValueError(f"the cap of importance ratios is above 0; this one is {cap}")
    logp_S = as_floats(logp_S).detach()
    gap_S = logp_S - as_floats(behaviour_logp_S).to(logp_S).detach()
    return (gap_S.cumsum(-1) - gap_S).clamp(max=MAX_LOG_RATIO).exp().clamp(max=cap)


def effect_weights(hinted_logits_SV: TensorLike, plain_logits_SV: TensorLike) -> Tensor:
    """How much a hint changes its reader's choice at each token: 0 where not at all, near 1 from a few nats on.

    A teacher whose weights are not the student's disagrees with it for reasons of its own. Without this they would be
    distilled along with the hint, and pull the student back to what the teacher was.
    """
    return -torch.expm1(-divergence(plain_logits_SV, hinted_logits_SV, beta=1.0))


def ttf_loss(
    student_logits_SV: TensorLike,
    teacher_logits_SV: TensorLike,
    weights_S: TensorLike = 1.0,
    ratio_S: TensorLike = 1.0,
    beta: float = 0.7,
    kappa: float = 2.0,
) -> Tensor:
    """The sum over a span's S tokens of weight * ratio * D * min(1, kappa / D), with D the `divergence` at a token.

    Student and teacher score the same ids, the teacher after the hint. Weights (`disagreement_weights`), ratios
    (`prefix_ratios`), the teacher and the cap's factor are constants: the gradient goes to the student's logits alone.
    The cap scales a token's gradient down and never to nothing, because D is large exactly where the hint matters. The
    caller weighs spans and divides by a constant.
    """
    return weighed_divergence(divergence(student_logits_SV, teacher_logits_SV, beta), weights_S, ratio_S, kappa)


def weighed_divergence(divergence_S: Tensor, weights_S: TensorLike, ratio_S: TensorLike, kappa: float) -> Tensor:
    """The sum that `ttf_loss` is, of divergences that are known."""
    if not kappa > 0:
        raise ValueError(f"kappa is above 0; this one is {kappa}")
    factor_S = kappa / divergence_S.detach().clamp(min=kappa)
    for constants in (weights_S, ratio_S):
        factor_S = factor_S * as_floats(constants).to(divergence_S).detach().expand_as(divergence_S)
    return (factor_S * divergence_S).sum()


def anchor_loss(
    logp_BT: TensorLike, start_logp_BT: TensorLike, mask_BT: TensorLike, denominator: float | Tensor | None = None
) -> Tensor:
    """The divergence from the start on the tokens in the mask, over `denominator`: how many they are, unless given.

    From the sampled tokens alone, so no logits are needed: start / policy - 1 - log(start / policy), which is never
    negative. Its mean over the policy's own tokens is KL(policy || start), the mean of its gradient that of
    KL(start || policy).
    """
    logp_BT = as_floats(logp_BT)
    mask_BT = as_mask(mask_BT, logp_BT)
    gap_BT = reference_logp(logp_BT, start_logp_BT, mask_BT) - logp_BT.where(mask_BT, logp_BT.new_zeros(()))
    loss_BT = gap_BT.expm1() - gap_BT
    return normalised_sum(loss_BT, mask_BT.sum().clamp(min=1) if denominator is None else denominator)
