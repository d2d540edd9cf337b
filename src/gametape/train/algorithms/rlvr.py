"""Reinforcement learning from verified rewards (arm `rlvr`): the group-relative policy gradient, with the table `[rl]`.

Trajectories of earlier work can be learned from as well (`[reward] recorded_trajectories`): the verifier's reward, and
what people said about the work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from gametape.core.config import RunConfig
from gametape.core.token_segments import TokenSegment
from gametape.train.algorithms.base import Algorithm
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.losses import group_advantages
from gametape.train.policy_module import PolicyModule
from gametape.train.recorded_groups import RecordedGroups
from gametape.train.rollouts import RolloutGroup, baseline_members, gradient_members


class Rlvr(Algorithm):
    """Rollouts of mixed groups, each with its advantage over the others. Rollouts that may not have a gradient get
    none, and count in the baseline of the others."""

    compares_rollouts = True

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self._recorded = RecordedGroups(config.reward, config.seed)

    def setup(self, module: PolicyModule) -> None:  # noqa: ARG002
        self._recorded.load()

    def score_group(self, group: RolloutGroup) -> Mapping[int, float]:
        return rollout_advantages(group, self.config.rl.advantage)

    def build_batch(self, groups: Sequence[RolloutGroup]) -> TrainBatch:
        recorded = self._recorded.next_groups()
        batch = super().build_batch([*groups, *recorded])
        earlier = {group.request.number for group in recorded}
        samples = (replace(sample, recorded=sample.prompt_number in earlier) for sample in batch.samples)
        return replace(batch, samples=tuple(samples)) if recorded else batch

    def segment_samples(
        self,
        group: RolloutGroup,
        index: int,
        number: int,  # noqa: ARG002
        segment: TokenSegment,
        advantage: float,
    ) -> Sequence[TrainSample]:
        sample = self.rewarded_sample(group, index, segment, advantage)
        return [sample] if sample.has_advantage else []

    def rewarded_sample(self, group: RolloutGroup, index: int, segment: TokenSegment, advantage: float) -> TrainSample:
        """With the rollout's advantage, or with those of its turns where these have rewards of their own."""
        by_step = credit_advantages(group, index, self.config.rl.advantage)
        return TrainSample(
            segment,
            group.request.number,
            0.0 if by_step else advantage,
            rollout_index=index,
            step_advantages=by_step,
        )

    def state(self) -> dict[str, Any]:
        return super().state() | {"recorded": self._recorded.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._recorded.restore(state.get("recorded", {}))


def rollout_advantages(group: RolloutGroup, variant: str) -> dict[int, float]:
    """By rollout, of those that get a gradient: how much better it was than the rest. Only mixed groups have any."""
    if group.kind != "mixed":
        return {}
    counted = baseline_members(group.results)
    rewards_G = torch.tensor([group.results[at].reward for at in counted])
    values = dict(zip(counted, group_advantages(rewards_G, variant).tolist(), strict=True))
    return {at: values[at] for at in gradient_members(group.results)}


def credit_advantages(group: RolloutGroup, index: int, variant: str) -> tuple[tuple[int, float], ...]:
    """By step of a rollout that gets a gradient: how much better than in the others its part of the work was. Empty
    where turns have no rewards of their own."""
    credits = group.results[index].credits
    if group.kind != "mixed" or index not in gradient_members(group.results):
        return ()
    advantages: list[tuple[int, float]] = []
    for number, credit in enumerate(credits):
        like = {at: group.results[at].credits[number] for at in baseline_members(group.results)}
        rewards = {at: other.reward for at, other in like.items() if other.given == credit.given}
        values_G = group_advantages(torch.tensor(list(rewards.values())), variant)
        value = float(values_G[list(rewards).index(index)])
        advantages += [(step, value) for step in credit.steps]
    return tuple(advantages)
