"""Where finished groups come from. In one process with the learner, or in a process of its own (`apart`)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from torch import Tensor

from gametape.agent.episode import Episode, rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.core.errors import BadInput
from gametape.core.messages import Sampling
from gametape.core.seeds import seed_for
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.engines.token_conversation import TokenModel
from gametape.evals.suite import SuiteItem
from gametape.sandbox.keeper_client import SandboxError
from gametape.tasks.worlds.experts import NoisyExpert
from gametape.tasks.worlds.world import World
from gametape.train.demonstrations import demonstrate
from gametape.train.prompts import PromptDataset
from gametape.train.rollouts import PromptRequest, RolloutGroup, RolloutSample


class RolloutSource(Protocol):
    """Gives finished, judged groups with the versions of the weights that sampled them."""

    def order(self, draw: PromptRequest) -> None:
        """Ask for a group. What has been ordered is played in this order, as far as there is room."""
        ...

    async def take(self) -> RolloutGroup:
        """The next finished group of those ordered."""
        ...

    def finished(self) -> list[RolloutGroup]:
        """Those of the ordered groups that can be had without waiting."""
        ...

    async def publish(self, version: int, weights: dict[str, Tensor]) -> None:
        """Sample with these from now on."""
        ...

    async def close(self) -> None: ...


class RolloutWorker:
    """Plays assignments with one model, many at once. Every rollout's seed comes from its draw and its number."""

    def __init__(
        self, model: TokenModel, dataset: PromptDataset, limits: RolloutLimits, temperature: float, seed: int
    ) -> None:
        self.model, self._supply, self._limits = model, dataset, limits
        self._temperature, self._seed = temperature, seed

    async def run_group(self, draw: PromptRequest, size: int) -> tuple[RolloutGroup, Sequence[Episode]]:
        """Its first rollout is also kept in words: what all have in common comes from their prompt, and is no habit."""
        prompt = self._supply.prompt(draw)
        names = [f"d{draw.number:08}.{member:03}" for member in range(size)]
        played = await asyncio.gather(*(self.run_episode(prompt, name) for name in names))
        return RolloutGroup(
            draw, tuple(RolloutSample.from_episode(each, in_words=at == 0) for at, each in enumerate(played))
        ), played

    async def run_episode(self, prompt: SuiteItem, name: str) -> Episode:
        """`name` is this attempt's in the whole run: its seed, and its turn in the engine, follow from it."""
        sampling = Sampling(temperature=self._temperature, seed=seed_for(self._seed, name))
        engine: Any = self.model.engine
        assignment = prompt.environment
        setting = rollout_config_for(assignment, prompt.adapt_model(self.model), sampling, self._limits, name)
        with engine.participant():
            return await run_episode(assignment, setting, infra_error=SandboxError)


class Annotator(Protocol):
    """Adds to a finished group what it finds in it."""

    async def annotate(self, group: RolloutGroup, episodes: Sequence[Episode]) -> RolloutGroup: ...


class NullAnnotator:
    async def annotate(self, group: RolloutGroup, episodes: Sequence[Episode]) -> RolloutGroup:  # noqa: ARG002
        return group


class SyncSource:
    """A `Source` on the learner's own tensors: what is taken was sampled by the weights as they are now.

    Whoever changes them tells the engine.
    """

    def __init__(self, worker: RolloutWorker, group_size: int, annotator: Annotator) -> None:
        self._players, self._size, self._looker = worker, group_size, annotator
        self._ordered: list[PromptRequest] = []
        self._finished: list[RolloutGroup] = []

    def order(self, draw: PromptRequest) -> None:
        self._ordered.append(draw)

    async def take(self) -> RolloutGroup:
        """All that is ordered is played at once: the engine batches it."""
        if not self._finished:
            draws, self._ordered = self._ordered, []
            played = await asyncio.gather(*(self._players.run_group(draw, self._size) for draw in draws))
            self._finished = [await self._looker.annotate(group, each) for group, each in played]
        return self._finished.pop(0)

    def finished(self) -> list[RolloutGroup]:
        groups, self._finished = self._finished, []
        return groups

    async def publish(self, version: int, weights: dict[str, Tensor]) -> None:
        """They are its own."""

    async def close(self) -> None:
        await self._players.model.close()


class DemonstrationSource:
    """A `Source`. The expert is right at ordinary turns with probability `skill`, and keeps to rules as often as the
    world's base rate says: it knows no more than the policy that it taught."""

    def __init__(
        self, dataset: PromptDataset, dialect: ChatFormat, expert_accuracy: float, group_size: int, seed: int
    ) -> None:
        self._supply, self._dialect, self._skill, self._size, self._seed = (
            dataset,
            dialect,
            expert_accuracy,
            group_size,
            seed,
        )
        self._ordered: list[PromptRequest] = []

    def order(self, draw: PromptRequest) -> None:
        self._ordered.append(draw)

    async def take(self) -> RolloutGroup:
        draw = self._ordered.pop(0)
        world = self._supply.prompt(draw).environment
        if not isinstance(world, World):
            raise BadInput("demonstrations are there for worlds only: take another arm, or give worlds:NAME as tasks")
        expert = NoisyExpert(self._skill, world.spec.base_rate)
        seeds = [seed_for(self._seed, "shown", draw.number, member) for member in range(self._size)]
        shown = [await demonstrate(world, expert, self._dialect, seed) for seed in seeds]
        return RolloutGroup(draw, tuple(_as_demonstration(RolloutSample.from_episode(one.episode)) for one in shown))

    def finished(self) -> list[RolloutGroup]:
        return []

    async def publish(self, version: int, weights: dict[str, Tensor]) -> None:
        """An expert learns nothing."""

    async def close(self) -> None:
        """There is nothing to close."""


def _as_demonstration(rolled: RolloutSample) -> RolloutSample:
    """Written down by somebody who knows: no weights sampled it, and no engine read it."""
    lines = (replace(line, policy_versions=[-1] * len(line.ids)) for line in rolled.segments)
    return replace(rolled, segments=tuple(lines), tokens_read=0, tokens_generated=0)
