"""The term of targeted feedback: what the teacher would do at a target after the hint is to be done without it."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from gametape.core.config import TTFConfig
from gametape.train.forward import forward, head_of
from gametape.train.logprobs import span_logits
from gametape.train.losses import (
    disagreement_weights,
    divergence,
    effect_weights,
    prefix_ratios,
    ttf_loss,
)
from gametape.train.packed_batch import PackedTarget, pack_for_teacher

_TOP_TOKENS = 5
"""How many of the likeliest tokens are kept to look at."""


@dataclass(frozen=True)
class TargetMetrics:
    """What one target did in an update, token by token, for people to look at."""

    kind: str
    text: str
    rollout: str
    """The name of the rollout, as its trajectory has it."""
    step: int
    ids: list[int]
    student: list[float]
    """Log-probabilities of the sampled tokens, without the hint."""
    teacher: list[float]
    """And after it."""
    kl: list[float]
    weights: list[float]
    student_top: list[list[tuple[int, float]]]
    teacher_top: list[list[tuple[int, float]]]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class TeacherLogits:
    """A teacher's logits at each span, after the hint and without it, and how many tokens it had to read for them."""

    hinted: list[Tensor]
    unhinted: list[Tensor]
    tokens_read: int


class Teacher:
    """Whose reading of the hint is learned: a slow average of the policy, its start, or the policy as it is now."""

    def __init__(self, network: Any, config: TTFConfig) -> None:
        self._config = config
        self._network = None if config.teacher == "current" else deepcopy(network).requires_grad_(False).eval()

    @property
    def shares_forward(self) -> bool:
        """Whether it can read in the student's own forward."""
        return self._network is None

    def update_from(self, network: Any) -> None:
        """After an update of the policy."""
        if self._network is None or self._config.teacher == "start":
            return
        with torch.no_grad():
            for mine, theirs in zip(self._network.parameters(), network.parameters(), strict=True):
                mine.lerp_(theirs, 1 - self._config.ema)

    def logits_for(
        self, spans: Sequence[PackedTarget], hidden_NE: Tensor, head_VE: Tensor, temperature: float
    ) -> "TeacherLogits":
        """Its logits at each span, without a gradient."""
        with torch.no_grad():
            if self._network is None:
                hinted = [span.hinted_rows_S for span in spans if span.hinted_rows_S is not None]
                plain = [span.rows_S for span in spans]
                tokens = sum(len(span.target.hint_ids) + span.target.length for span in spans)
            else:
                packed, hinted, plain = pack_for_teacher(spans)
                hidden_NE, tokens = forward(self._network, packed.to(hidden_NE.device)), len(packed.ids_N)
                head_VE = head_of(self._network)
            own_NE, own_VE = hidden_NE, head_VE

            def logits(rows: Sequence[Tensor]) -> list[Tensor]:
                return [span_logits(own_NE[row_S], own_VE, temperature) for row_S in rows]

            return TeacherLogits(logits(hinted), logits(plain), tokens)

    def tensors(self) -> dict[str, Tensor]:
        return {} if self._network is None else dict(self._network.named_parameters())

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self.tensors().items():
                parameter.copy_(tensors[name])


def ttf_loss_term(
    spans: Sequence[PackedTarget],
    student: Sequence[Tensor],
    teacher: TeacherLogits,
    sampled_logp_M: Tensor,
    config: TTFConfig,
    importance_cap: float,
) -> tuple[Tensor, list[TargetMetrics]]:
    """The sum over targets, before the factor and the normaliser; and what there is to see of each."""
    total = student[0].new_zeros(())
    seen = []
    for span, student_SV, teacher_SV, plain_SV in zip(spans, student, teacher.hinted, teacher.unhinted, strict=True):
        ids_S = torch.tensor(span.target.span_ids(span.sample.segment), device=student_SV.device)
        weights_S = disagreement_weights(student_SV.detach(), teacher_SV, ids_S, config.gamma)
        weights_S = weights_S * effect_weights(teacher_SV, plain_SV)
        logp_S = _token_logprobs(student_SV.detach(), ids_S)
        ratio_S = prefix_ratios(logp_S, sampled_logp_M[span.positions_S], importance_cap)
        total = total + span.target.weight * ttf_loss(
            student_SV, teacher_SV, weights_S, ratio_S, config.beta, config.kappa
        )
        seen.append(_target_metrics(span, student_SV.detach(), teacher_SV, ids_S, weights_S, config.beta))
    return total, seen


def _target_metrics(
    span: PackedTarget, student_SV: Tensor, teacher_SV: Tensor, ids_S: Tensor, weights_S: Tensor, beta: float
) -> TargetMetrics:
    return TargetMetrics(
        kind=span.target.kind,
        text=span.target.text,
        rollout=span.target.trajectory_id,
        step=span.target.step,
        ids=ids_S.tolist(),
        student=_token_logprobs(student_SV, ids_S).tolist(),
        teacher=_token_logprobs(teacher_SV, ids_S).tolist(),
        kl=divergence(student_SV, teacher_SV, beta).tolist(),
        weights=weights_S.tolist(),
        student_top=_top(student_SV),
        teacher_top=_top(teacher_SV),
    )


def _token_logprobs(logits_SV: Tensor, ids_S: Tensor) -> Tensor:
    chosen: Tensor = logits_SV.log_softmax(-1).gather(1, ids_S[:, None])[:, 0]
    return chosen


def _top(logits_SV: Tensor) -> list[list[tuple[int, float]]]:
    probs_ST, ids_ST = logits_SV.softmax(-1).topk(min(_TOP_TOKENS, logits_SV.shape[1]))
    rows = zip(ids_ST.tolist(), probs_ST.tolist(), strict=True)
    return [list(zip(ids, (round(prob, 5) for prob in probs), strict=True)) for ids, probs in rows]
