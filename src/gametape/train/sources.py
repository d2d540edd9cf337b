"""Rollouts of the policy in one process with the learner. `async_source` samples in a process of its own."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from gametape.agent.episode import Episode, rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.core.environment import EpisodeScore
from gametape.core.messages import Sampling
from gametape.core.seeds import seed_for
from gametape.engines.token_conversation import TokenModel
from gametape.evals.suite import SuiteItem
from gametape.sandbox.keeper_client import SandboxError
from gametape.train.prompts import PromptDataset
from gametape.train.rollouts import GroupAnnotator, PromptRequest, RolloutGroup, RolloutSample, Weights

Reward = Callable[[EpisodeScore], float]
"""What an episode with this score is worth to the learner."""


def environment_reward(score: EpisodeScore) -> float:
    """The environment's own reward."""
    return score.reward


class RolloutWorker:
    """Runs episodes with one model, many at once. The seed of a rollout comes from its request and its number."""

    def __init__(
        self,
        model: TokenModel,
        dataset: PromptDataset,
        limits: RolloutLimits,
        temperature: float,
        seed: int,
        reward: Reward = environment_reward,
    ) -> None:
        self.model, self._dataset, self._limits = model, dataset, limits
        self._temperature, self._seed, self._reward = temperature, seed, reward

    async def run_group(self, request: PromptRequest, size: int) -> tuple[RolloutGroup, Sequence[Episode]]:
        """The first rollout also keeps its turns in words, for monitors: one is enough, because what all rollouts of a
        group have in common comes from their prompt."""
        item = self._dataset.prompt(request)
        names = [f"d{request.number:08}.{member:03}" for member in range(size)]
        episodes = await asyncio.gather(*(self.run_episode(item, name) for name in names))
        rollouts = (RolloutSample.from_episode(episode, with_texts=at == 0) for at, episode in enumerate(episodes))
        return RolloutGroup(request, tuple(rollouts)), episodes

    async def run_episode(self, item: SuiteItem, name: str) -> Episode:
        """`name` is the attempt's own in the whole run: its seed, and its place in the engine's order, follow from
        it."""
        sampling = Sampling(temperature=self._temperature, seed=seed_for(self._seed, name))
        environment = item.environment
        config = rollout_config_for(environment, item.adapt_model(self.model), sampling, self._limits, name)
        with self.model.engine.participant():
            episode = await run_episode(environment, config, infra_error=SandboxError)
        if episode.score is None:
            return episode
        return replace(episode, score=replace(episode.score, reward=self._reward(episode.score)))


class NullAnnotator:
    """An `Annotator` that finds nothing."""

    async def annotate(self, group: RolloutGroup, episodes: Sequence[Episode]) -> RolloutGroup:  # noqa: ARG002
        return group


class SyncSource:
    """A `RolloutSource` on the learner's own tensors: groups are sampled by the weights as they are when taken."""

    def __init__(self, worker: RolloutWorker, group_size: int, annotator: GroupAnnotator) -> None:
        self._worker, self._size, self._annotator = worker, group_size, annotator
        self._ordered: list[PromptRequest] = []
        self._finished: list[RolloutGroup] = []

    def order(self, request: PromptRequest) -> None:
        self._ordered.append(request)

    async def take(self) -> RolloutGroup:
        """All ordered requests are sampled at once: the engine batches them."""
        if not self._finished:
            requests, self._ordered = self._ordered, []
            groups = await asyncio.gather(*(self._worker.run_group(request, self._size) for request in requests))
            self._finished = [await self._annotator.annotate(group, episodes) for group, episodes in groups]
        return self._finished.pop(0)

    def finished(self) -> list[RolloutGroup]:
        groups, self._finished = self._finished, []
        return groups

    async def publish(self, version: int, weights: Weights) -> None:  # noqa: ARG002
        """The engine samples from the tensors that the learner has changed. It also drops all that it has read, so that
        a run that begins here later comes to the same numbers."""
        engine = self._worker.model.engine
        engine.weights_changed(version)
        engine.forget()

    async def close(self) -> None:
        await self._worker.model.close()
