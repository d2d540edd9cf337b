"""Targeted textual feedback (arms `rlvr_ttf` and `rlvr_ttf_gated`): at turns that a coach has a hint for, the policy
learns to do without the hint what a teacher would do after it. The tables are `[ttf]` and, for gates, `[gates]`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import log
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gametape.agent.limits import RolloutLimits
from gametape.coach.statistics import HintStatistics
from gametape.core.config import RunConfig, TTFConfig
from gametape.core.token_segments import TokenSegment
from gametape.engines.token_conversation import TokenModel
from gametape.train.algorithms.base import ExtraLoss, MicroBatch
from gametape.train.algorithms.rlvr import Rlvr
from gametape.train.attention_plan import on_device
from gametape.train.batch import PackedBatch, TargetRows, TrainBatch, TrainSample, pack_for_teacher, pack_samples
from gametape.train.coach_annotator import CoachAnnotator
from gametape.train.losses import anchor_loss, discounts_after, prefix_ratios, weighed_divergence
from gametape.train.policy_module import PolicyModule
from gametape.train.reference_policy import make_reference
from gametape.train.rollouts import AnnotatedEpisode, DistillTarget, GroupAnnotator, RolloutGroup, TargetMetrics
from gametape.train.span_divergence import SpanReading, TeacherRows, read_spans
from gametape.train.token_logprobs import token_logprobs

_CONFIDENT = log(0.5)
"""The anchor holds tokens that the start gave more than this."""


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

    def combine_annotator_states(
        self, known: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The statistics of hints hold more than counts."""
        states = (HintStatistics.from_dict(state.get("statistics", {})) for state in (known, before, after))
        statistics, earlier, later = states
        combined = super().combine_annotator_states(known, before, after)
        return {**combined, "statistics": statistics.with_news(earlier, later).to_dict()}

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
        positions_T = torch.cat([span.positions_S for span in spans])
        teacher = self.teacher.rows_for(spans, micro.hidden_NE, micro.head_VE.detach())
        ids_T, sampled_T = micro.packed.targets_M[positions_T], micro.packed.sampled_logp_M[positions_T]
        reading = read_spans(micro.hidden_ME[positions_T], micro.head_VE, teacher, ids_T, ttf.beta, temperature)
        term, weights_T = ttf_loss_term(spans, reading, sampled_T, ttf, self.config.rl.importance_cap)
        loss = ttf.weight * term / (micro.batch.rollouts * ttf.normalizer_tokens)
        tokens_read = teacher.tokens_read
        if ttf.anchor:
            anchored = pack_samples(list({id(span.sample): span.sample for span in spans}.values()))
            anchored = anchored.to(micro.logp_M.device)
            loss = loss + ttf.anchor * self._anchor(micro, anchored)
            tokens_read += len(anchored.packed.ids_N)
        columns = _columns(reading, ids_T, weights_T)
        return ExtraLoss(loss, ttf.clip_norm, tokens_read, lambda: _target_metrics(spans, columns))

    def _anchor(self, micro: MicroBatch, anchored: PackedBatch) -> Tensor:
        """Divergence from the start of the run at those chosen tokens of samples with a target that are none of it, and
        that the start was sure of: what was right by luck is not to be held back."""
        start_M, packed = micro.start_logprobs(anchored), micro.packed
        positions = _positions_of(anchored.samples, packed)
        targets = torch.cat([span.positions_S for span in packed.target_rows])
        held_M = torch.zeros_like(packed.targets_M, dtype=torch.bool).index_fill_(0, targets, True)
        free = ~held_M[positions] & (start_M > _CONFIDENT)
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
    flags = [np.full(len(one.sampled_positions), id(one.segment) in wanted) for one in packed.samples]
    (positions_K,) = on_device([np.flatnonzero(np.concatenate(flags))], packed.targets_M.device)
    return positions_K


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
        if self._reference:
            self._reference.release()
        if self._reference and self._config.teacher == "ema":
            self._reference.follow(1 - self._config.ema)

    def rows_for(self, spans: Sequence[TargetRows], hidden_NE: Tensor, head_VE: Tensor) -> TeacherRows:
        """Its last hidden states at the tokens of all spans, one span after the other."""
        if self._reference is None:
            return _rows_beside(spans, hidden_NE, head_VE)
        packed, hinted, plain = pack_for_teacher(spans)
        (rows_T,) = on_device([torch.cat([*hinted, *plain]).numpy()], hidden_NE.device)
        found_TE, teacher_VE = self._reference.hidden_at(packed.to(hidden_NE.device), rows_T)
        hinted_TE, plain_TE = found_TE.chunk(2)
        return TeacherRows(hinted_TE, plain_TE, teacher_VE, len(packed.ids_N))

    def tensors(self) -> dict[str, Tensor]:
        return self._reference.tensors() if self._reference else {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        if self._reference:
            self._reference.load(tensors)


def _rows_beside(spans: Sequence[TargetRows], hidden_NE: Tensor, head_VE: Tensor) -> TeacherRows:
    """Hidden states that the student's forward has computed."""
    hinted = [span.hinted_rows_S for span in spans if span.hinted_rows_S is not None]
    tokens = sum(len(span.target.hint_ids) + span.target.length for span in spans)
    plain_T = torch.cat([span.rows_S for span in spans])
    return TeacherRows(hidden_NE[torch.cat(hinted)], hidden_NE[plain_T], head_VE, tokens)


def ttf_loss_term(
    spans: Sequence[TargetRows], reading: SpanReading, sampled_T: Tensor, config: TTFConfig, importance_cap: float
) -> tuple[Tensor, Tensor]:
    """The sum over targets, before the factor and the normaliser; and the weights of their tokens."""
    lengths = np.array([span.target.length for span in spans])
    steps_S, starts_P1 = np.arange(lengths.max()), (np.cumsum(lengths) - lengths)[:, None]
    inside_PS = steps_S < lengths[:, None]
    # Behind its end a span repeats its first token: what counts at a token is what was before it.
    places_PS, back_T = on_device(
        [np.where(inside_PS, starts_P1 + steps_S, starts_P1), np.flatnonzero(inside_PS)], sampled_T.device
    )
    (factor_T,) = on_device([np.repeat([float(span.target.weight) for span in spans], lengths)], sampled_T.device)
    student_T = reading.student_T.detach()
    discounts_PS = discounts_after(reading.left_T[places_PS], config.gamma, student_T.dtype)
    ratio_PS = prefix_ratios(student_T[places_PS], sampled_T[places_PS], importance_cap)
    weights_T = discounts_PS.flatten()[back_T] * reading.effect_T
    ratio_T = ratio_PS.flatten()[back_T] * factor_T.to(student_T)
    return weighed_divergence(reading.divergence_T, weights_T, ratio_T, config.kappa), weights_T


def _columns(reading: SpanReading, ids_T: Tensor, weights_T: Tensor) -> Tensor:
    """What becomes the metrics of targets, where it was computed: [T, 5 + 4 K]."""
    values_T5 = torch.stack(
        (ids_T, reading.student_T, reading.teacher_T, reading.divergence_T.detach(), weights_T), dim=1
    )
    student = reading.student_probs_TK, reading.student_tops_TK
    return torch.cat(
        [one.double() for one in (values_T5, *student, reading.teacher_probs_TK, reading.teacher_tops_TK)], 1
    )


def _target_metrics(spans: Sequence[TargetRows], columns: Tensor) -> list[TargetMetrics]:
    """All in one copy from a GPU."""
    lines, metrics = iter(columns.tolist()), []
    for span in spans:
        target, rows = span.target, list(islice(lines, span.target.length))
        ids, student, teacher, kl, weights = map(list, zip(*(row[:5] for row in rows), strict=True))
        student_probs, student_tops, teacher_probs, teacher_tops = (
            [row[5 + at * len(row[5:]) // 4 : 5 + (at + 1) * len(row[5:]) // 4] for row in rows] for at in range(4)
        )
        metrics.append(
            TargetMetrics(
                kind=target.kind,
                text=target.text,
                author=target.author,
                rollout=target.trajectory_id,
                step=target.step,
                ids=[int(one) for one in ids],
                student=student,
                teacher=teacher,
                kl=kl,
                weights=weights,
                student_top=_top(student_tops, student_probs),
                teacher_top=_top(teacher_tops, teacher_probs),
            )
        )
    return metrics


def _top(ids_TK: Sequence[Sequence[float]], probs_TK: Sequence[Sequence[float]]) -> list[list[tuple[int, float]]]:
    return [
        [(int(one), round(prob, 5)) for one, prob in zip(ids, probs, strict=True)]
        for ids, probs in zip(ids_TK, probs_TK, strict=True)
    ]
