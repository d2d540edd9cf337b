"""What one update learns from: lines of ids, each with what it counts in the streams of the loss."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch

from gametape.core.token_segments import TokenSegment
from gametape.train.distill_target import DistillTarget
from gametape.train.losses import group_advantages
from gametape.train.rollouts import RolloutGroup, RolloutSample, baseline_members, gradient_members


@dataclass(frozen=True)
class TrainSample:
    """One context with the tokens that were chosen in it. `family`: lines of one group begin with the same prompt."""

    segment: TokenSegment
    prompt_number: int
    advantage: float = 0.0
    """In the policy gradient; 0 leaves the line out of it."""
    sft_weight: float = 0.0
    """How much its chosen tokens are made likelier, as in supervised training."""
    targets: tuple[DistillTarget, ...] = ()
    """Turns at which a hint is distilled, whatever else the line counts for."""

    @property
    def sampled_positions(self) -> list[int]:
        """The places of the tokens that the policy chose."""
        return [at for at, bit in enumerate(self.segment.mask) if bit]


@dataclass(frozen=True)
class TrainBatch:
    """`rollouts` counts all that were sampled for this update, whatever became of them: it fixes the normaliser."""

    samples: tuple[TrainSample, ...]
    rollouts: int
    request_numbers: tuple[int, ...] = field(default=())
    """The numbers of the draws that it comes from, to name it by."""


def rl_batch(groups: Sequence[RolloutGroup], advantage: str) -> TrainBatch:
    """Mixed groups, each rollout with its advantage over the others; and whatever the coach aims at, advantage or not.

    Rollouts that may not have a gradient get none here, and have counted in the baseline of the others.
    """
    lines = []
    for group in groups:
        values = rollout_advantages(group, advantage)
        for at, rolled in enumerate(group.rollouts):
            for number, segment in enumerate(rolled.segments):
                aims = [one.target for one in group.targets if (one.rollout, one.segment) == (at, number)]
                distilled = tuple(aim for aim in aims if aim.learn == "kl")
                if distilled or values.get(at):
                    lines.append(TrainSample(segment, group.request.number, values.get(at, 0.0), targets=distilled))
                lines += [_replacement_sample(aim, segment, group.request.number) for aim in aims if aim.learn != "kl"]
    return _batch(lines, groups)


def _replacement_sample(aim: DistillTarget, segment: TokenSegment, family: int) -> TrainSample:
    """A target from which something else is learned than the teacher's choices."""
    line = aim.replacement_segment(segment)
    if aim.learn == "penalty":
        return TrainSample(line, family, advantage=-aim.weight)
    return TrainSample(line, family, sft_weight=aim.weight)


def imitation_batch(groups: Sequence[RolloutGroup], worth: Callable[[RolloutSample], bool]) -> TrainBatch:
    """What is worth it is imitated."""
    lines = [
        TrainSample(segment, group.request.number, sft_weight=1.0)
        for group in groups
        for rolled in group.rollouts
        if worth(rolled)
        for segment in rolled.segments
    ]
    return _batch(lines, groups)


def demonstration_batch(families: Iterable[Sequence[TokenSegment]]) -> TrainBatch:
    """Demonstrations; those of one family begin alike."""
    lines = tuple(
        TrainSample(segment, number, sft_weight=1.0) for number, family in enumerate(families) for segment in family
    )
    return TrainBatch(lines, rollouts=len(lines))


def rollout_advantages(group: RolloutGroup, variant: str) -> dict[int, float]:
    """By rollout, of those that get a gradient: how much better it was than the rest. Only mixed groups have any."""
    if group.kind != "mixed":
        return {}
    counted = baseline_members(group.results)
    rewards_G = torch.tensor([group.results[at].reward for at in counted])
    values = dict(zip(counted, group_advantages(rewards_G, variant).tolist(), strict=True))
    return {at: values[at] for at in gradient_members(group.results)}


def _batch(lines: Sequence[TrainSample], groups: Sequence[RolloutGroup]) -> TrainBatch:
    rollouts = sum(len(group.rollouts) for group in groups)
    return TrainBatch(tuple(lines), rollouts, tuple(group.request.number for group in groups))
