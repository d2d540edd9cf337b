"""Datasets of prompts: buckets to sample from while training, and prompts that are held out; and the curriculum, which
chooses the buckets."""

import os
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from gametape.agent.task_environment import TaskEnvironment, TaskSandboxPool
from gametape.core.config import RunConfig
from gametape.core.protocols import Environment
from gametape.core.seeds import seed_for
from gametape.evals.suite import WORLDS_PREFIX, SuiteItem, item_from_task, item_from_world
from gametape.record.loaded_task import LoadedTask
from gametape.tasks.worlds.memory import MemoryPair
from gametape.tasks.worlds.spec import MEMORY_PRESET, WorldSpec, preset
from gametape.tasks.worlds.world import World
from gametape.train.activity import ActivityClock
from gametape.train.rollouts import PromptRequest
from gametape.train.training_tasks import training_tasks

_HELD_OUT_EVERY = 5
"""One in so many task directories is held out."""


class PromptDataset(Protocol):
    """Where prompts come from."""

    @property
    def buckets(self) -> Sequence[str]:
        """The names of the buckets: each is one prompt, or a family of prompts that never recur."""
        ...

    def prompt(self, request: PromptRequest) -> SuiteItem: ...

    def held_out(self, number: int) -> SuiteItem:
        """The n-th prompt that is never trained on."""
        ...


@runtime_checkable
class PreparableDataset(Protocol):
    """A dataset of prompts that take a while to prepare."""

    def prepare(self, request: PromptRequest) -> None:
        """Begin to prepare the prompt of a request that will probably come soon."""
        ...


@dataclass(frozen=True)
class WorldPromptDataset:
    """Worlds that are drawn anew for each request. Held out are pairs of a rule and a context that no training world
    has."""

    specs: tuple[WorldSpec, ...]
    seed: int
    pairs: bool = False
    """Whether each is played as a memory pair: by a writer, and by a reader of its note."""

    @property
    def buckets(self) -> Sequence[str]:
        return [spec.bucket for spec in self.specs]

    def prompt(self, request: PromptRequest) -> SuiteItem:
        return self._item(self.specs[request.bucket].model_copy(update={"seed": request.seed, "split": "train"}))

    def held_out(self, number: int) -> SuiteItem:
        spec = self.specs[number % len(self.specs)]
        seed = seed_for(self.seed, "held out", number)
        return self._item(spec.model_copy(update={"seed": seed, "split": "held_out"}))

    def _item(self, spec: WorldSpec) -> SuiteItem:
        if self.pairs:
            return SuiteItem(MemoryPair(spec).writer, 2 * spec.horizon)
        return item_from_world(World(spec))


@dataclass(frozen=True)
class TaskPromptDataset:
    """Task directories, each a bucket of its own; one in five is held out."""

    items: tuple[SuiteItem, ...]

    @property
    def buckets(self) -> Sequence[str]:
        return [item.environment.name for item in self._train_items]

    def prompt(self, request: PromptRequest) -> SuiteItem:
        return self._train_items[request.bucket]

    def held_out(self, number: int) -> SuiteItem:
        held_out = self.items[::_HELD_OUT_EVERY]
        return held_out[number % len(held_out)]

    @property
    def _train_items(self) -> list[SuiteItem]:
        return [item for at, item in enumerate(self.items) if at % _HELD_OUT_EVERY]

    def prepare(self, request: PromptRequest) -> None:
        environment = self.prompt(request).environment
        if isinstance(environment, TaskEnvironment):
            environment.prepare()


@dataclass(frozen=True)
class EnvironmentDataset:
    """Environments of your own: a list of them, or a function that makes one from a seed.

    Of a list each is a bucket, and one in five is held out; an only one is trained and evaluated on. Of a function the
    instances are one bucket, and held-out ones come from other seeds. `words` are what a tiny policy may write as
    arguments whose schema lists no values, and words that it should know besides those of prompts and tool results.
    """

    environments: Sequence[Environment] | Callable[[int], Environment]
    seed: int = 0
    words: Sequence[str] = ()

    @property
    def buckets(self) -> Sequence[str]:
        if callable(self.environments):
            return ["environment"]
        return [environment.name for environment in self._trained]

    def prompt(self, request: PromptRequest) -> SuiteItem:
        if callable(self.environments):
            return SuiteItem(self.environments(request.seed))
        return SuiteItem(self._trained[request.bucket])

    def held_out(self, number: int) -> SuiteItem:
        if callable(self.environments):
            return SuiteItem(self.environments(seed_for(self.seed, "held out", number)))
        held_out = self.environments[::_HELD_OUT_EVERY]
        return SuiteItem(held_out[number % len(held_out)])

    def environment(self, seed: int) -> Environment:
        """One of those that are trained on."""
        if callable(self.environments):
            return self.environments(seed)
        return random.Random(seed).choice(self._trained)

    @property
    def _trained(self) -> Sequence[Environment]:
        assert not callable(self.environments)
        trained = [one for at, one in enumerate(self.environments) if at % _HELD_OUT_EVERY]
        return trained or self.environments


@asynccontextmanager
async def open_prompt_dataset(config: RunConfig, home: Path, clock: ActivityClock) -> AsyncIterator[PromptDataset]:
    """The dataset that `tasks` of a configuration names. The clock hears when tasks are prepared."""
    tasks, seed = config.tasks, config.seed
    if tasks.startswith(WORLDS_PREFIX):
        name = tasks.removeprefix(WORLDS_PREFIX)
        yield WorldPromptDataset((preset(name),), seed, pairs=name == MEMORY_PRESET)
        return
    found = training_tasks(config, home)
    worlds = [task for task in found if isinstance(task, World)]
    loaded = [task for task in found if isinstance(task, LoadedTask)]
    if worlds:
        yield WorldPromptDataset(tuple({world.bucket: world.spec for world in worlds}.values()), seed)
        return
    verifiers = config.rollouts.verifiers or max(1, (os.cpu_count() or 1) // 2)
    pool = TaskSandboxPool(
        home,
        config.rollouts.sandboxes or None,
        reward_kind=config.reward.kind,
        verifiers=verifiers,
        preparing=partial(clock.during, "prepare"),
    )
    async with pool as sandboxes:
        yield TaskPromptDataset(tuple(item_from_task(task, sandboxes, home, config.rl.turns) for task in loaded))


_HISTORY_FACTOR = 4
"""Times the number of samples that a decision needs: old successes do not count for ever."""


class Curriculum:
    """Chooses buckets at random, and retires those that are learned."""

    def __init__(self, buckets: int, pass_rate: float, samples: int, replay: float, seed: int) -> None:
        self._pass_rate, self._samples, self._replay, self._seed = pass_rate, samples, replay, seed
        self._seen = [deque[bool](maxlen=samples * _HISTORY_FACTOR) for _ in range(buckets)]

    @property
    def buckets(self) -> int:
        return len(self._seen)

    @property
    def retired(self) -> list[int]:
        return [bucket for bucket, seen in enumerate(self._seen) if self._is_learned(seen)]

    @property
    def pass_rates(self) -> dict[int, float]:
        """By bucket, over the latest samples of those that were drawn."""
        return {bucket: round(sum(seen) / len(seen), 4) for bucket, seen in enumerate(self._seen) if seen}

    def draw(self, number: int) -> int:
        """The bucket of the n-th request. With every bucket retired it is one of the retired."""
        rng = random.Random(seed_for(self._seed, "cell", number))
        retired = set(self.retired)
        active = [bucket for bucket in range(len(self._seen)) if bucket not in retired]
        pool = sorted(retired) if retired and (not active or rng.random() < self._replay) else active
        return rng.choice(pool)

    def record(self, bucket: int, passed: Sequence[bool]) -> None:
        self._seen[bucket].extend(passed)

    def state(self) -> list[list[bool]]:
        return [list(seen) for seen in self._seen]

    def restore(self, state: Sequence[Sequence[bool]]) -> None:
        for seen, passed in zip(self._seen, state, strict=True):
            seen.clear()
            seen.extend(passed)

    def _is_learned(self, seen: deque[bool]) -> bool:
        return len(seen) >= self._samples and sum(seen) >= self._pass_rate * len(seen)
