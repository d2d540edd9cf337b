"""The policies that a loss compares with: the proximal one, which is the policy at the start of a batch, and the
behaviour, which sampled the tokens. And the sums over whole rollouts that some losses need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gametape.train.attention_plan import on_device
from gametape.train.batch import PackedBatch, TrainSample
from gametape.train.losses import RolloutSums, log_ratios

SampleLogprobs = Mapping[int, Tensor]
"""By the identity of a sample: log-probabilities of its chosen tokens."""


class TokenReferences(NamedTuple):
    """Log-probabilities of chosen tokens under the policies that a loss compares with."""

    old: Tensor
    """What clipping holds the policy near to."""
    behaviour: Tensor


@dataclass(frozen=True)
class StepReferences:
    """What one step of the optimiser knows of its samples before their forward."""

    samples: Sequence[TrainSample]
    """All samples of the step."""
    cap: float
    proximal: SampleLogprobs = field(default_factory=dict)
    """At the start of the batch. A sample that is not there is being scored for the first time, by those weights."""
    current: SampleLogprobs = field(default_factory=dict)
    """Before the step, for rollouts whose ratio is needed and that do not go through one forward together."""

    def of_tokens(self, packed: PackedBatch, logp_M: Tensor) -> TokenReferences:
        """For the chosen tokens of a part of the step; `logp_M` is what the policy gives them now.

        Earlier work is compared with the policy that did it: once the policy has left its neighbourhood in the
        direction of the advantage, clipping ends the gradient, however often the work is learned from. Where the policy
        has gone the other way, the ratio is at most `cap`.
        """
        proximal_M = self.proximal_of(packed.samples, logp_M)
        sampled_M = packed.sampled_logp_M.to(proximal_M)
        if not any(sample.recorded for sample in packed.samples):
            return TokenReferences(proximal_M, sampled_M)
        recorded_M = packed.to_tokens(packed.recorded_BT)
        old_M = torch.where(recorded_M, _held(sampled_M, proximal_M, self.cap), proximal_M)
        return TokenReferences(old_M, torch.where(recorded_M, old_M, sampled_M))

    def proximal_of(self, part: Sequence[TrainSample], logp_M: Tensor) -> Tensor:
        """At the start of the batch."""
        if not self.proximal:
            return logp_M.detach()
        pieces = zip(part, logp_M.detach().split([len(sample.sampled_positions) for sample in part]), strict=True)
        return torch.cat([self.proximal.get(id(sample), logp_T) for sample, logp_T in pieces])

    def rollout_sums(self, packed: PackedBatch, logp_M: Tensor, tokens: TokenReferences) -> RolloutSums:
        """For each sample of a part, over all segments of its rollout in this step. Segments outside of the part that
        nobody has scored count with their tokens alone."""
        part = packed.samples
        rollouts = {key: number for number, key in enumerate(dict.fromkeys(sample.rollout_key for sample in part))}
        inside = {id(sample) for sample in part}
        outside = [one for one in self.samples if one.rollout_key in rollouts and id(one) not in inside]
        of_rollout_BR = np.zeros((len(part), len(rollouts)))
        of_rollout_BR[np.arange(len(part)), [rollouts[sample.rollout_key] for sample in part]] = 1.0
        counts_R = np.zeros(len(rollouts))
        for sample in (*part, *outside):
            counts_R[rollouts[sample.rollout_key]] += len(sample.sampled_positions)
        moved = on_device([of_rollout_BR, of_rollout_BR @ counts_R], logp_M.device)
        weights_BR, counts_B = (one.to(logp_M.dtype) for one in moved)
        ratios_M = log_ratios(logp_M.detach(), tokens.old)
        sums_2B = torch.stack(
            [packed.to_padded(one).sum(1) for one in (ratios_M, log_ratios(tokens.old, tokens.behaviour))]
        )
        sums_2R = sums_2B @ weights_BR
        for sample in outside:
            if id(sample) in self.current:
                sums_2R[:, rollouts[sample.rollout_key]] += self._sums(sample, logp_M)
        ratio_B, weight_B = sums_2R @ weights_BR.T
        return RolloutSums(counts_B, ratio_B, weight_B)

    def _sums(self, sample: TrainSample, like: Tensor) -> Tensor:
        """Of the log-ratios of a sample that was scored before the step."""
        logp_T = self.current[id(sample)].to(like)
        proximal_T = self.proximal.get(id(sample), logp_T).to(like)
        sampled_T = torch.from_numpy(sample.sampled_logp).to(like)
        old_T = _held(sampled_T, proximal_T, self.cap) if sample.recorded else proximal_T
        behaviour_T = old_T if sample.recorded else sampled_T
        return torch.stack([log_ratios(logp_T, old_T).sum(), log_ratios(old_T, behaviour_T).sum()])


def _held(sampled: Tensor, proximal: Tensor, cap: float) -> Tensor:
    return sampled.maximum(proximal - log(cap))


def split_rollouts(parts: Sequence[Sequence[TrainSample]]) -> list[TrainSample]:
    """The samples of rollouts that are in more than one part."""
    places: dict[tuple[int, int], set[int]] = {}
    for number, part in enumerate(parts):
        for sample in part:
            places.setdefault(sample.rollout_key, set()).add(number)
    return [sample for part in parts for sample in part if len(places[sample.rollout_key]) > 1]
