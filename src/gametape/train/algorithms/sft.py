"""Supervised fine-tuning (arm `sft`): demonstrations of a noisy expert are imitated, right or wrong.

Of the configuration it reads `[warm] ordinary_rate`, the expert's accuracy. The warm start of a tiny policy learns with
it too.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.core.protocols import Environment
from gametape.core.seeds import seed_for
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.tasks.worlds.experts import NoisyExpert
from gametape.tasks.worlds.world import World
from gametape.train.algorithms.base import Algorithm, imitation_batch
from gametape.train.batch import TrainBatch
from gametape.train.demonstrations import demonstrate
from gametape.train.policy import TrainablePolicy
from gametape.train.prompts import PromptDataset
from gametape.train.rollouts import GroupSource, PromptRequest, RolloutGroup, RolloutSample, Weights


class Sft(Algorithm):
    samples_policy = False

    def make_source(self, dataset: PromptDataset, policy: TrainablePolicy) -> GroupSource:
        return DemonstrationSource(dataset, policy.chat_format, self.config)

    def build_batch(self, groups: Sequence[RolloutGroup]) -> TrainBatch:
        return imitation_batch(groups, lambda _rollout: True)


class DemonstrationSource:
    """A `RolloutSource` of an expert's episodes. The expert is right at ordinary turns as often as `[warm]` says, and
    keeps to rules as often as the world's base rate says: it knows no more than the policy that it taught."""

    def __init__(self, dataset: PromptDataset, chat_format: ChatFormat, config: RunConfig) -> None:
        self.chat_format, self.warm = chat_format, config.warm
        self._dataset, self._size, self._seed = dataset, config.rl.group_size, config.seed
        self._ordered: list[PromptRequest] = []

    def order(self, request: PromptRequest) -> None:
        self._ordered.append(request)

    async def take(self) -> RolloutGroup:
        request = self._ordered.pop(0)
        environment = self._dataset.prompt(request).environment
        seeds = [seed_for(self._seed, "shown", request.number, member) for member in range(self._size)]
        return RolloutGroup(request, tuple(await asyncio.gather(*(self.rollout(environment, seed) for seed in seeds))))

    async def rollout(self, environment: Environment, seed: int) -> RolloutSample:
        if not isinstance(environment, World):
            raise BadInput("demonstrations are there for worlds only: take another arm, or give worlds:NAME as tasks")
        expert = NoisyExpert(self.warm.ordinary_rate, environment.spec.base_rate)
        demonstration = await demonstrate(environment, expert, self.chat_format, seed)
        return as_demonstration(RolloutSample.from_episode(demonstration.episode))

    def finished(self) -> list[RolloutGroup]:
        return []

    async def publish(self, version: int, weights: Weights) -> None:
        """The expert does not depend on the policy's weights."""

    async def close(self) -> None:
        """There is nothing to close."""


def as_demonstration(rollout: RolloutSample) -> RolloutSample:
    """No weights sampled it, and no engine read it."""
    segments = (replace(segment, policy_versions=[-1] * len(segment.ids)) for segment in rollout.segments)
    return replace(rollout, segments=tuple(segments), tokens_read=0, tokens_generated=0)
