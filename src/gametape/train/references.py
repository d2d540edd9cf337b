"""The policies that a loss compares with: the proximal one, which is the policy at the start of a batch, and the
behaviour, which sampled the tokens. And the sums over whole rollouts that some losses need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from gametape.train.batch import TrainSample
from gametape.train.losses import RolloutSums, log_ratios

SampleLogprobs = Mapping[int, Tensor]
"""By the identity of a sample: log-probabilities of its chosen tokens."""


class TokenReferences(NamedTuple):
    """Log-probabilities of chosen tokens under the policies that a loss compares with."""

    old: Tensor
    """What clipping holds the policy near to."""
    behaviour: Tensor


def references_of(sample: TrainSample, proximal_T: Tensor, cap: float) -> TokenReferences:
    """`proximal_T` are the sample's log-probabilities at the start of the batch.

    Earlier work is compared with the policy that did it: once the policy has left its neighbourhood in the direction of
    the advantage, clipping ends the gradient, however often the work is learned from. Where the policy has gone the
    other way, the ratio is at most `cap`.
    """
    sampled_T = sample.sampled_logp.to(proximal_T)
    if not sample.recorded:
        return TokenReferences(proximal_T, sampled_T)
    old_T = sampled_T.maximum(proximal_T - log(cap))
    return TokenReferences(old_T, old_T)


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

    def of_samples(self, part: Sequence[TrainSample], logp_M: Tensor) -> TokenReferences:
        """For the chosen tokens of some samples, in their order; `logp_M` is what the policy gives them now."""
        pairs = zip(part, self._split(part, logp_M), strict=True)
        both = [references_of(sample, self.proximal.get(id(sample), logp_T), self.cap) for sample, logp_T in pairs]
        return TokenReferences(
            torch.cat([references.old for references in both]),
            torch.cat([references.behaviour for references in both]),
        )

    def proximal_of(self, part: Sequence[TrainSample], logp_M: Tensor) -> Tensor:
        """At the start of the batch."""
        pieces = zip(part, self._split(part, logp_M), strict=True)
        return torch.cat([self.proximal.get(id(sample), logp_T) for sample, logp_T in pieces])

    def rollout_sums(self, part: Sequence[TrainSample], logp_M: Tensor) -> RolloutSums:
        """For each sample of a part, over all segments of its rollout in this step. Segments outside of the part that
        nobody has scored count with their tokens alone."""
        logp: dict[int, Tensor] = {**self.current}
        logp |= {id(sample): logp_T for sample, logp_T in zip(part, self._split(part, logp_M), strict=True)}
        wanted = {sample.rollout_key for sample in part}
        sums: dict[tuple[int, int], Tensor] = {}
        for sample in self.samples:
            if sample.rollout_key in wanted:
                own = self._sums(sample, logp.get(id(sample)), logp_M)
                sums[sample.rollout_key] = sums.get(sample.rollout_key, 0) + own
        tokens_B, ratio_B, weight_B = torch.stack([sums[sample.rollout_key] for sample in part], dim=1)
        return RolloutSums(tokens_B, ratio_B, weight_B)

    def _sums(self, sample: TrainSample, logp_T: Tensor | None, like: Tensor) -> Tensor:
        sums_3 = like.new_zeros(3)
        sums_3[0] = len(sample.sampled_positions)
        if logp_T is not None:
            references = references_of(sample, self.proximal.get(id(sample), logp_T), self.cap)
            sums_3[1] = log_ratios(logp_T, references.old).sum()
            sums_3[2] = log_ratios(references.old, references.behaviour).sum()
        return sums_3

    @staticmethod
    def _split(part: Sequence[TrainSample], logp_M: Tensor) -> Sequence[Tensor]:
        pieces: Sequence[Tensor] = logp_M.detach().split([len(sample.sampled_positions) for sample in part])
        return pieces


def split_rollouts(parts: Sequence[Sequence[TrainSample]]) -> list[TrainSample]:
    """The samples of rollouts that are in more than one part."""
    places: dict[tuple[int, int], set[int]] = {}
    for number, part in enumerate(parts):
        for sample in part:
            places.setdefault(sample.rollout_key, set()).add(number)
    return [sample for part in parts for sample in part if len(places[sample.rollout_key]) > 1]
