"""How far a student's next-token distributions are from a teacher's, over the whole vocabulary."""

from typing import Any

import torch
from torch import Tensor

from gametape.train.losses.tokens import Numbers, as_floats

_IMPOSSIBLE = -1e4
"""The log-prob of a token whose logit is minus infinity: far enough, and its difference from itself is 0."""
_PLACES = 16


def divergence(student_logits_SV: Numbers, teacher_logits_SV: Numbers, beta: float = 0.7) -> Tensor:
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
            student_SV = student_logits_SV[few].log_softmax(-1).clamp_(min=_IMPOSSIBLE)
            teacher_SV = teacher_logits_SV[few].log_softmax(-1).clamp_(min=_IMPOSSIBLE)
            p_student_SV, p_teacher_SV = student_SV.exp(), teacher_SV.exp()
            gap_SV = student_SV - teacher_SV
            forward_S1 = -(p_teacher_SV * gap_SV).sum(-1, keepdim=True)
            reverse_S1 = (p_student_SV * gap_SV).sum(-1, keepdim=True)
            divergence_S[few] = (beta * forward_S1 + (1 - beta) * reverse_S1)[..., 0].clamp(min=0)
            if slope_SV is not None:
                forward_SV, reverse_SV = p_student_SV - p_teacher_SV, p_student_SV * (gap_SV - reverse_S1)
                slope_SV[few] = beta * forward_SV + (1 - beta) * reverse_SV
        ctx.save_for_backward(slope_SV)
        return divergence_S

    @staticmethod
    def backward(ctx: Any, slope_S: Tensor) -> tuple[Tensor, None, None]:
        (slope_SV,) = ctx.saved_tensors
        return slope_S[..., None] * slope_SV, None, None
