"""How far a student is from a teacher at the tokens of targets, from last hidden states: logits exist for a chunk of
rows at a time, in the backward too, so that memory does not grow with the number of targets."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gametape.train.losses import divergence_and_slope, effect_weights, leaves_teacher
from gametape.train.token_logprobs import LOGITS_AT_A_TIME, add_product, wide_logits

_TABLES = 8
"""So many tables of a chunk's logits are there at once, of student and teacher and what is computed from them. They
share the room that one has elsewhere."""
TOP_TOKENS = 5
"""How many of the likeliest tokens are written down for people to look at."""


@dataclass(frozen=True)
class TeacherRows:
    """A teacher's last hidden states at T tokens, after the hint and without it, without a gradient."""

    hinted_TE: Tensor
    plain_TE: Tensor
    head_VE: Tensor
    tokens_read: int = 0
    others_KE: Tensor | None = None
    """At what was chosen in other samples, where it was asked for."""


class SpanReading(NamedTuple):
    """Of each token. Only the divergence has a gradient, which goes to the student."""

    divergence_T: Tensor
    student_T: Tensor
    """The log-probability of the token; below the teacher's."""
    teacher_T: Tensor
    effect_T: Tensor
    """See `effect_weights`."""
    left_T: Tensor
    """See `leaves_teacher`."""
    student_probs_TK: Tensor
    student_tops_TK: Tensor
    teacher_probs_TK: Tensor
    teacher_tops_TK: Tensor


def read_spans(
    hidden_TE: Tensor,
    head_VE: Tensor,
    teacher: TeacherRows,
    ids_T: Tensor,
    beta: float,
    temperature: float = 1.0,
    chunk: int | None = None,
) -> SpanReading:
    """`chunk` is the number of rows whose logits exist at a time."""
    rows = chunk or max(1, LOGITS_AT_A_TIME[hidden_TE.device.type] // (_TABLES * len(head_VE)))
    ends = hidden_TE, head_VE, teacher.hinted_TE, teacher.plain_TE, teacher.head_VE, ids_T
    return SpanReading(*_SpanReading.apply(*ends, beta, temperature, rows))


class _SpanReading(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(
        ctx: Any,
        hidden_TE: Tensor,
        head_VE: Tensor,
        hinted_TE: Tensor,
        plain_TE: Tensor,
        teacher_VE: Tensor,
        ids_T: Tensor,
        beta: float,
        temperature: float,
        rows: int,
    ) -> tuple[Tensor, ...]:
        parts = []
        for start in range(0, len(hidden_TE), rows):
            at = slice(start, start + rows)
            hinted_CV = wide_logits(hinted_TE[at], teacher_VE, temperature)
            effect_C = effect_weights(hinted_CV, wide_logits(plain_TE[at], teacher_VE, temperature))
            student_CV = wide_logits(hidden_TE[at], head_VE, temperature)
            parts.append(_statistics(student_CV, hinted_CV, effect_C, ids_T[at], beta))
            del hinted_CV, student_CV
        found = tuple(torch.cat(column) for column in zip(*parts, strict=True))
        ctx.save_for_backward(hidden_TE, head_VE, hinted_TE, teacher_VE)
        ctx.settings = beta, temperature, rows
        ctx.mark_non_differentiable(*found[1:])
        return found

    @staticmethod
    def backward(ctx: Any, grad_T: Tensor, *_others: Tensor) -> tuple[Tensor | None, ...]:
        hidden_TE, head_VE, hinted_TE, teacher_VE = ctx.saved_tensors
        beta, temperature, rows = ctx.settings
        for_hidden, for_head, *_ = ctx.needs_input_grad
        grad_hidden_TE = torch.empty_like(hidden_TE) if for_hidden else None
        grad_head_VE = torch.zeros_like(head_VE, dtype=grad_T.dtype) if for_head else None
        for start in range(0, len(hidden_TE), rows):
            at = slice(start, start + rows)
            student_CV = wide_logits(hidden_TE[at], head_VE, temperature)
            _, slope_CV = divergence_and_slope(student_CV, wide_logits(hinted_TE[at], teacher_VE, temperature), beta)
            del student_CV
            grad_CV = slope_CV.mul_((grad_T[at] / temperature)[:, None]).to(hidden_TE.dtype)
            del slope_CV
            if grad_hidden_TE is not None:
                grad_hidden_TE[at] = grad_CV @ head_VE
            if grad_head_VE is not None:
                add_product(grad_head_VE, grad_CV.t(), hidden_TE[at])
        return grad_hidden_TE, None if grad_head_VE is None else grad_head_VE.to(head_VE.dtype), *([None] * 7)


def _statistics(
    student_CV: Tensor, hinted_CV: Tensor, effect_C: Tensor, ids_C: Tensor, beta: float
) -> tuple[Tensor, ...]:
    left_C = leaves_teacher(student_CV, hinted_CV, ids_C)
    divergence_C, _ = divergence_and_slope(student_CV, hinted_CV, beta, slope=False)
    most = min(TOP_TOKENS, student_CV.shape[1])
    logs, tops = [], []
    for logits_CV in (student_CV, hinted_CV):
        lse_C1 = logits_CV.logsumexp(-1, keepdim=True)
        logs.append((logits_CV.gather(1, ids_C[:, None]) - lse_C1)[:, 0])
        top_CK, top_ids_CK = logits_CV.topk(most)
        tops += [(top_CK - lse_C1).exp(), top_ids_CK]
    return divergence_C, *logs, effect_C, left_C, *tops
