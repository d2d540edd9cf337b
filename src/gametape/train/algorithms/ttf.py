"""Targeted textual feedback (arms `rlvr_ttf` and `rlvr_ttf_gated`): at turns that a coach has a hint for, the policy
learns to do without the hint what a teacher would do after it. The tables are `[ttf]` and, for gates, `[gates]`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any, ClassVar

import torch
from torch import Tensor

from gametape.agent.limits import RolloutLimits
from gametape.core.config import RunConfig, TTFConfig
from gametape.core.token_segments import TokenSegment
from gametape.engines.token_conversation import TokenModel
from gametape.train.algorithms.base import ExtraLoss, MicroBatch
from gametape.train.algorithms.rlvr import Rlvr
from gametape.train.batch import PackedBatch, TargetRows, TrainBatch, TrainSample, pack_for_teacher, pack_samples
from gametape.train.coach_annotator import CoachAnnotator
from gametape.train.losses import (
    anchor_loss,
    disagreement_weights,
    divergence,
    effect_weights,
    prefix_ratios,
    ttf_loss,
)
from gametape.train.policy_module import PolicyModule
from gametape.train.reference_policy import make_reference
from gametape.train.rollouts import AnnotatedEpisode, DistillTarget, GroupAnnotator, RolloutGroup, TargetMetrics
from gametape.train.token_logprobs import span_logits, token_logprobs

_CONFIDENT = log(0.5)
"""The anchor holds tokens that the start gave more than this."""
_TOP_TOKENS = 5
"""How many of the likeliest tokens are written down for people to look at."""


class Ttf(Rlvr):
    """Verified rewards, and the distillation of hints at their targets."""

    gated: ClassVar[bool] = False
    """Only hints that pass all their gates are used."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.needs_start = config.ttf.anchor > 0
        self._annotator: CoachAnnotator | None = None
        self._teacher: Teacher | None = None

    @property
    def last_annotated(self) -> AnnotatedEpisode | None:
        return self._annotator.last_annotated if self._annotator else None

    @property
    def teacher(self) -> "Teacher":
        assert self._teacher, "setup comes first"
        return self._teacher

    def make_annotator(self, model: TokenModel, limits: RolloutLimits) -> GroupAnnotator:
        self._annotator = CoachAnnotator(self.config, model, limits, self.gated, self.score_group)
        return self._annotator

    def setup(self, module: PolicyModule) -> None:
        super().setup(module)
        self._teacher = Teacher(module, self.config.ttf)
        self.packs_hints = self._teacher.shares_forward

    def modules(self) -> Sequence[PolicyModule]:
        return self.teacher.modules()

    def segment_samples(
        self, group: RolloutGroup, index: int, number: int, segment: TokenSegment, advantage: float
    ) -> Sequence[TrainSample]:
        """The segment with its advantage and its targets, or with the targets alone; and a sample for each target from
        which something else is learned than the teacher's choices."""
        prompt = group.request.number
        targets = [
            target for target in group.targets if (target.rollout_index, target.segment_index) == (index, number)
        ]
        distilled = tuple(target for target in targets if target.learn == "kl")
        whole = replace(self.rewarded_sample(group, index, segment, advantage), targets=distilled)
        samples = [whole] if distilled or whole.has_advantage else []
        return samples + [_replacement(target, segment, prompt) for target in targets if target.learn != "kl"]

    def has_extra_loss(self, samples: Sequence[TrainSample]) -> bool:
        return any(sample.targets for sample in samples)

    def extra_loss(self, micro: MicroBatch) -> ExtraLoss | None:
        """The distillation term, with the anchor that holds what is no target."""
        spans, ttf, temperature = micro.packed.target_rows, self.config.ttf, self.config.rl.temperature
        if not spans:
            return None
        student = [span_logits(micro.hidden_ME[span.positions_S], micro.head_VE, temperature) for span in spans]
        teacher = self.teacher.logits_for(spans, micro.hidden_NE, micro.head_VE.detach(), temperature)
        cap = self.config.rl.importance_cap
        chosen = micro.packed.targets_M, micro.packed.sampled_logp_M
        term, figures = ttf_loss_term(spans, student, teacher, *chosen, ttf, cap)
        loss = ttf.weight * term / (micro.batch.rollouts * ttf.normalizer_tokens)
        tokens_read = teacher.tokens_read
        if ttf.anchor:
            anchored = pack_samples(list({id(span.sample): span.sample for span in spans}.values()))
            anchored = anchored.to(micro.logp_M.device)
            loss = loss + ttf.anchor * self._anchor(micro, anchored)
            tokens_read += len(anchored.packed.ids_N)
        return ExtraLoss(loss, ttf.clip_norm, tokens_read, lambda: [each.metrics() for each in figures])

    def _anchor(self, micro: MicroBatch, anchored: PackedBatch) -> Tensor:
        """Divergence from the start of the run at those chosen tokens of samples with a target that are none of it, and
        that the start was sure of: what was right by luck is not to be held back."""
        start_M, packed = micro.start_logprobs(anchored), micro.packed
        positions = _positions_of(anchored.samples, packed)
        targets = torch.cat([span.positions_S for span in packed.target_rows])
        free = ~torch.isin(positions, targets) & (start_M > _CONFIDENT)
        rl = self.config.rl
        logp_K, _ = token_logprobs(
            micro.hidden_ME[positions], micro.head_VE, packed.targets_M[positions], rl.temperature
        )
        return anchor_loss(logp_K[None], start_M[None], free[None], micro.batch.rollouts * rl.normalizer_tokens)

    def lr_factor(self, batch: TrainBatch) -> float:
        """An update without any reward signal may have a smaller learning rate."""
        rewarded = any(sample.has_advantage or sample.sft_weight for sample in batch.samples)
        return 1.0 if rewarded else self.config.ttf.hint_only_lr_scale

    def after_update(self, module: PolicyModule) -> None:  # noqa: ARG002
        self.teacher.follow()

    def state(self) -> dict[str, Any]:
        return super().state() | {"coach": self._annotator.state() if self._annotator else {}}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        if self._annotator:
            self._annotator.restore(state["coach"])

    def tensors(self) -> dict[str, Tensor]:
        return self.teacher.tensors()

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        self.teacher.load(tensors)


class GatedTtf(Ttf):
    gated = True


def _replacement(target: DistillTarget, segment: TokenSegment, prompt: int) -> TrainSample:
    replaced = target.replacement_segment(segment)
    if target.learn == "penalty":
        return TrainSample(replaced, prompt, advantage=-target.weight)
    return TrainSample(replaced, prompt, sft_weight=target.weight)


def _positions_of(samples: Sequence[TrainSample], packed: PackedBatch) -> Tensor:
    """Which of the chosen tokens belong to these samples, in the samples' order."""
    wanted = {id(sample.segment) for sample in samples}
    rows = [at for at, sample in enumerate(packed.samples) if id(sample.segment) in wanted]
    positions_BT = packed.positions_BT[rows]
    return positions_BT[positions_BT >= 0]


@dataclass(frozen=True)
class TeacherLogits:
    """A teacher's logits at each span, after the hint and without it, and how many tokens it read for them."""

    hinted: list[Tensor]
    unhinted: list[Tensor]
    tokens_read: int


class Teacher:
    """The network whose choices after a hint are learned: a slow average of the policy, its start, or the policy as it
    is now."""

    def __init__(self, module: PolicyModule, config: TTFConfig) -> None:
        self._config = config
        self._reference = None if config.teacher == "current" else make_reference(module, config.teacher == "ema")

    def modules(self) -> Sequence[PolicyModule]:
        return self._reference.modules() if self._reference else ()

    @property
    def shares_forward(self) -> bool:
        """Whether it can read in the student's own forward."""
        return self._reference is None

    def follow(self) -> None:
        """After an update of the policy."""
        if self._reference and self._config.teacher == "ema":
            self._reference.follow(1 - self._config.ema)

    def logits_for(
        self, spans: Sequence[TargetRows], hidden_NE: Tensor, head_VE: Tensor, temperature: float
    ) -> TeacherLogits:
        """Its logits at each span, without a gradient."""
        if self._reference is None:
            with torch.no_grad():
                return _logits_beside(spans, hidden_NE, head_VE, temperature)
        packed, hinted, plain = pack_for_teacher(spans)
        logits = self._reference.logits_at(packed.to(hidden_NE.device), [*hinted, *plain], temperature)
        return TeacherLogits(logits[: len(hinted)], logits[len(hinted) :], len(packed.ids_N))

    def tensors(self) -> dict[str, Tensor]:
        return self._reference.tensors() if self._reference else {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        if self._reference:
            self._reference.load(tensors)


def _logits_beside(
    spans: Sequence[TargetRows], hidden_NE: Tensor, head_VE: Tensor, temperature: float
) -> TeacherLogits:
    """Of hidden states that the student's forward has computed."""

    def logits(rows: Sequence[Tensor]) -> list[Tensor]:
        return [span_logits(hidden_NE[rows_S], head_VE, temperature) for rows_S in rows]

    hinted = logits([span.hinted_rows_S for span in spans if span.hinted_rows_S is not None])
    tokens = sum(len(span.target.hint_ids) + span.target.length for span in spans)
    return TeacherLogits(hinted, logits([span.rows_S for span in spans]), tokens)


def ttf_loss_term(
    spans: Sequence[TargetRows],
    student: Sequence[Tensor],
    teacher: TeacherLogits,
    targets_M: Tensor,
    sampled_logp_M: Tensor,
    config: TTFConfig,
    importance_cap: float,
) -> tuple[Tensor, list["_TargetFigures"]]:
    """The sum over targets, before the factor and the normaliser; and the figures of each target."""
    total = student[0].new_zeros(())
    figures = []
    for span, student_SV, teacher_SV, plain_SV in zip(spans, student, teacher.hinted, teacher.unhinted, strict=True):
        ids_S = targets_M[span.positions_S]
        weights_S = disagreement_weights(student_SV.detach(), teacher_SV, ids_S, config.gamma)
        weights_S = weights_S * effect_weights(teacher_SV, plain_SV)
        logp_S = _token_logprobs(student_SV.detach(), ids_S)
        ratio_S = prefix_ratios(logp_S, sampled_logp_M[span.positions_S], importance_cap)
        total = total + span.target.weight * ttf_loss(
            student_SV, teacher_SV, weights_S, ratio_S, config.beta, config.kappa
        )
        figures.append(_TargetFigures.of_span(span, student_SV.detach(), teacher_SV, ids_S, weights_S, config.beta))
    return total, figures


@dataclass(frozen=True)
class _TargetFigures:
    """What becomes the metrics of a target, where it was computed."""

    target: DistillTarget
    ids_S: Tensor
    values_4S: Tensor
    """Log-probabilities under student and teacher, divergences, weights."""
    tops: tuple[tuple[Tensor, Tensor], ...]
    """The likeliest tokens of student and teacher: probabilities and ids."""

    @classmethod
    def of_span(
        cls, span: TargetRows, student_SV: Tensor, teacher_SV: Tensor, ids_S: Tensor, weights_S: Tensor, beta: float
    ) -> "_TargetFigures":
        logps = [_token_logprobs(logits_SV, ids_S) for logits_SV in (student_SV, teacher_SV)]
        values_4S = torch.stack([*logps, divergence(student_SV, teacher_SV, beta), weights_S])
        return cls(span.target, ids_S, values_4S, (_top(student_SV), _top(teacher_SV)))

    def metrics(self) -> TargetMetrics:
        student, teacher, kl, weights = self.values_4S.tolist()
        student_top, teacher_top = (_read(*top) for top in self.tops)
        return TargetMetrics(
            kind=self.target.kind,
            text=self.target.text,
            author=self.target.author,
            rollout=self.target.trajectory_id,
            step=self.target.step,
            ids=self.ids_S.tolist(),
            student=student,
            teacher=teacher,
            kl=kl,
            weights=weights,
            student_top=student_top,
            teacher_top=teacher_top,
        )


def _token_logprobs(logits_SV: Tensor, ids_S: Tensor) -> Tensor:
    chosen: Tensor = logits_SV.log_softmax(-1).gather(1, ids_S[:, None])[:, 0]
    return chosen


def _top(logits_SV: Tensor) -> tuple[Tensor, Tensor]:
    probs_ST, ids_ST = logits_SV.softmax(-1).topk(min(_TOP_TOKENS, logits_SV.shape[1]))
    return probs_ST, ids_ST


def _read(probs_ST: Tensor, ids_ST: Tensor) -> list[list[tuple[int, float]]]:
    rows = zip(ids_ST.tolist(), probs_ST.tolist(), strict=True)
    return [list(zip(ids, (round(prob, 5) for prob in probs), strict=True)) for ids, probs in rows]
