"""Targeted textual feedback (arms `rlvr_ttf` and `rlvr_ttf_gated`): at turns that a coach has a hint for, the policy
learns to do without the hint what a teacher would do after it. The tables are `[ttf]` and, for gates, `[gates]`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import log
from random import Random
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gametape.agent.limits import RolloutLimits
from gametape.coach.statistics import HintStatistics
from gametape.core.config import RunConfig, TTFConfig
from gametape.core.seeds import seed_for
from gametape.core.token_segments import TokenSegment
from gametape.engines.token_conversation import TokenModel
from gametape.train.algorithms.base import ExtraLoss, MicroBatch
from gametape.train.algorithms.rlvr import Rlvr
from gametape.train.attention_plan import on_device
from gametape.train.batch import (
    PackedBatch,
    TargetRows,
    TrainBatch,
    TrainSample,
    pack_for_teacher,
    pack_samples,
    target_sample,
)
from gametape.train.coach_annotator import CoachAnnotator
from gametape.train.losses import anchor_loss, discounts_after, prefix_ratios, weighed_divergence
from gametape.train.policy_module import PolicyModule
from gametape.train.reference_policy import make_reference
from gametape.train.rollouts import (
    AnnotatedEpisode,
    DistillTarget,
    GroupAnnotator,
    RolloutGroup,
    TargetMetrics,
    chosen_span,
)
from gametape.train.span_divergence import SpanReading, TeacherRows, read_spans
from gametape.train.token_logprobs import token_logprobs

_CONFIDENT = log(0.5)
"""The anchor holds tokens that the start gave more than this."""


class Ttf(Rlvr):
    """Verified rewards, and the distillation of hints at their targets."""

    gated: ClassVar[bool] = False
    """Only hints that pass all their gates are used."""
    weighs_effect: ClassVar[bool] = True
    """A token counts by how far the hint moves its teacher there."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.needs_start = config.ttf.anchor > 0 and config.ttf.teacher != "start"
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
        prompt, ttf = group.request.number, self.config.ttf
        targets = [
            target for target in group.targets if (target.rollout_index, target.segment_index) == (index, number)
        ]
        distilled = tuple(target for target in targets if target.learn == "kl")
        others = [
            _replacement(target, segment, prompt, ttf.prefix_gradient) for target in targets if target.learn != "kl"
        ]
        rewarded = self.rewarded_sample(group, index, segment, advantage)
        if rewarded.has_advantage:
            return [replace(rewarded, targets=distilled), *others]
        if not distilled:
            return others
        if ttf.prefix_gradient:
            return [replace(rewarded, targets=distilled), *others]
        held = _anchored_turns(segment, prompt, distilled, seed_for(self.config.seed, "held", prompt, index, number))
        alone = [target_sample(segment, prompt, target, prefix_gradient=False) for target in distilled]
        return [*alone, *(held if ttf.anchor else ()), *others]

    def has_extra_loss(self, samples: Sequence[TrainSample]) -> bool:
        return any(sample.targets or sample.anchored for sample in samples)

    def extra_loss(self, micro: MicroBatch) -> ExtraLoss | None:
        """The distillation term, with the anchor that holds what is no target."""
        spans, ttf, packed = micro.packed.target_rows, self.config.ttf, micro.packed
        held = [one for one in packed.samples if one.anchored or (one.targets and not one.frozen_prefix)]
        if not spans and not held:
            return None
        beside = held if ttf.anchor and ttf.teacher == "start" else ()
        teacher = self.teacher.rows_for(spans, micro.hidden_NE, micro.head_VE.detach(), beside)
        loss, tokens_read = micro.hidden_ME.sum() * 0.0, teacher.tokens_read
        metrics: Callable[[], Sequence[TargetMetrics]] = tuple
        if spans:
            term, metrics = self._distillation(micro, teacher)
            loss = loss + ttf.weight * term / (micro.batch.rollouts * ttf.normalizer_tokens)
        if ttf.anchor and held:
            anchored = pack_samples(held).to(micro.logp_M.device)
            tokens_read += 0 if beside else len(anchored.packed.ids_N)
            loss = loss + ttf.anchor * self._anchor(micro, anchored, self._start_logprobs(micro, anchored, teacher))
        return ExtraLoss(loss, ttf.clip_norm, tokens_read, metrics)

    def _distillation(
        self, micro: MicroBatch, teacher: TeacherRows
    ) -> tuple[Tensor, Callable[[], Sequence[TargetMetrics]]]:
        """The sum over targets, and what describes them."""
        spans, ttf, rl = micro.packed.target_rows, self.config.ttf, self.config.rl
        positions_T = torch.cat([span.positions_S for span in spans])
        ids_T, sampled_T = micro.packed.targets_M[positions_T], micro.packed.sampled_logp_M[positions_T]
        reading = read_spans(micro.hidden_ME[positions_T], micro.head_VE, teacher, ids_T, ttf.beta, rl.temperature)
        if not self.weighs_effect:
            reading = reading._replace(effect_T=torch.ones_like(reading.effect_T))
        term, weights_T = ttf_loss_term(spans, reading, sampled_T, ttf, rl.importance_cap)
        columns = _columns(reading, ids_T, weights_T)
        return term, lambda: _target_metrics(spans, columns)

    def _start_logprobs(self, micro: MicroBatch, anchored: PackedBatch, teacher: TeacherRows) -> Tensor:
        """Of what was chosen in these samples. A teacher that is the start has read them with its targets."""
        if teacher.others_KE is None:
            return micro.start_logprobs(anchored)
        ids_K = anchored.targets_M
        with torch.no_grad():
            return token_logprobs(teacher.others_KE, teacher.head_VE, ids_K, self.config.rl.temperature)[0]

    def _anchor(self, micro: MicroBatch, anchored: PackedBatch, start_M: Tensor) -> Tensor:
        """Divergence from the start of the run at those chosen tokens of these samples that are no target, and that the
        start was sure of: what was right by luck is not to be held back."""
        packed = micro.packed
        positions = _positions_of(anchored.samples, packed)
        held_M = torch.zeros_like(packed.targets_M, dtype=torch.bool)
        if packed.target_rows:
            held_M[torch.cat([span.positions_S for span in packed.target_rows])] = True
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

    def after_batch(self) -> None:
        if self._annotator:
            self._annotator.record_gaps(self.target_metrics)

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


def _replacement(target: DistillTarget, segment: TokenSegment, prompt: int, prefix_gradient: bool) -> TrainSample:
    replaced, frozen = target.replacement_segment(segment), 0 if prefix_gradient else target.start - 1
    if target.learn == "penalty":
        return TrainSample(replaced, prompt, advantage=-target.weight, frozen_prefix=frozen)
    return TrainSample(replaced, prompt, sft_weight=target.weight, frozen_prefix=frozen)


def _anchored_turns(
    segment: TokenSegment, prompt: int, targets: Sequence[DistillTarget], seed: int
) -> list[TrainSample]:
    """As many other turns before the end of the last target as there are targets, to be held to the start."""
    end = max(target.start + target.length for target in targets)
    steps = np.array(segment.steps[:end]) * np.array(segment.mask[:end])
    free = sorted({int(step) for step in steps if step} - {target.step for target in targets})
    chosen = Random(seed).sample(free, min(len(targets), len(free)))
    places = [np.flatnonzero(steps == step) for step in sorted(chosen)]
    spans = [(int(rows[0]), int(rows[-1]) + 1 - int(rows[0])) for rows in places]
    return [
        TrainSample(chosen_span(segment, start, length), prompt, frozen_prefix=start - 1, anchored=True)
        for start, length in spans
    ]


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

    def rows_for(
        self, spans: Sequence[TargetRows], hidden_NE: Tensor, head_VE: Tensor, others: Sequence[TrainSample] = ()
    ) -> TeacherRows:
        """Its last hidden states at the tokens of all spans, one span after the other; and at what was chosen in other
        samples, which it reads along with them."""
        if self._reference is None or not (spans or others):
            return _rows_beside(spans, hidden_NE, head_VE)
        packed, hinted, plain, chosen = pack_for_teacher(spans, others)
        (rows_T,) = on_device([torch.cat([*hinted, *plain, *chosen]).numpy()], hidden_NE.device)
        found_TE, teacher_VE = self._reference.hidden_at(packed.to(hidden_NE.device), rows_T)
        count = sum(map(len, hinted))
        others_KE = found_TE[2 * count :] if others else None
        return TeacherRows(found_TE[:count], found_TE[count : 2 * count], teacher_VE, len(packed.ids_N), others_KE)

    def tensors(self) -> dict[str, Tensor]:
        return self._reference.tensors() if self._reference else {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        if self._reference:
            self._reference.load(tensors)


def _rows_beside(spans: Sequence[TargetRows], hidden_NE: Tensor, head_VE: Tensor) -> TeacherRows:
    """Hidden states that the student's forward has computed."""
    hinted = [span.hinted_rows_S for span in spans if span.hinted_rows_S is not None]
    tokens = sum(len(span.target.hint_ids) + span.target.length for span in spans)
    if not spans:
        return TeacherRows(hidden_NE[:0], hidden_NE[:0], head_VE)
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
