"""Where prompts come from: cells to draw from while training, and a list that is held out."""

import random
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gametape.agent.task_environment import TaskSandboxPool
from gametape.core.errors import BadInput
from gametape.core.seeds import seed_for
from gametape.evals.suite import WORLDS_PREFIX, SuiteItem, find_tasks, item_from_task, item_from_world
from gametape.record.loaded_task import LoadedTask
from gametape.tasks.worlds.spec import WorldSpec, preset
from gametape.tasks.worlds.world import World
from gametape.train.rollouts import PromptRequest

_HELD_OUT_EVERY = 5
"""Of task directories, so many are held out."""


class PromptDataset(Protocol):
    @property
    def buckets(self) -> Sequence[str]: ...

    def prompt(self, draw: PromptRequest) -> SuiteItem: ...

    def held_out(self, number: int) -> SuiteItem:
        """The n-th prompt that is never trained on."""
        ...


@dataclass(frozen=True)
class WorldPromptDataset:
    """Worlds without end. Held out are pairs of a rule and a context that no training world has in it."""

    specs: tuple[WorldSpec, ...]
    seed: int

    @property
    def buckets(self) -> Sequence[str]:
        return [spec.bucket for spec in self.specs]

    def prompt(self, draw: PromptRequest) -> SuiteItem:
        return item_from_world(World(self.specs[draw.bucket].model_copy(update={"seed": draw.seed, "split": "train"})))

    def held_out(self, number: int) -> SuiteItem:
        spec = self.specs[number % len(self.specs)]
        seed = seed_for(self.seed, "held out", number)
        return item_from_world(World(spec.model_copy(update={"seed": seed, "split": "held_out"})))


@dataclass(frozen=True)
class TaskPromptDataset:
    """Task directories, each a cell of its own; one in five is held out."""

    items: tuple[SuiteItem, ...]

    @property
    def buckets(self) -> Sequence[str]:
        return [item.environment.name for item in self._train_items]

    def prompt(self, draw: PromptRequest) -> SuiteItem:
        return self._train_items[draw.bucket]

    def held_out(self, number: int) -> SuiteItem:
        kept = self.items[::_HELD_OUT_EVERY]
        return kept[number % len(kept)]

    @property
    def _train_items(self) -> list[SuiteItem]:
        return [item for at, item in enumerate(self.items) if at % _HELD_OUT_EVERY]


@asynccontextmanager
async def open_prompt_dataset(tasks: str, seed: int, home: Path, turns: int) -> AsyncIterator[PromptDataset]:
    """What `tasks` of a configuration names, ready to be played in at most so many turns."""
    if tasks.startswith(WORLDS_PREFIX):
        yield WorldPromptDataset((preset(tasks.removeprefix(WORLDS_PREFIX)),), seed)
        return
    worlds: list[World] = []
    subjects: list[LoadedTask] = []
    for one in find_tasks(tasks, home):
        if isinstance(one, World):
            worlds.append(one)
        else:
            subjects.append(one)
    if worlds:
        yield WorldPromptDataset(tuple({world.bucket: world.spec for world in worlds}.values()), seed)
        return
    if len(subjects) < 2:
        raise BadInput(f"tasks: {tasks}: at least two tasks are needed, one of them to be held out")
    async with TaskSandboxPool(home) as playground:
        yield TaskPromptDataset(tuple(item_from_task(subject, playground, home, turns) for subject in subjects))


_HISTORY_FACTOR = 4
"""Times the number of samples that a decision needs: old successes do not count for ever."""


class Curriculum:
    """Draws cells. A cell is a prompt, or a family of prompts that never recur."""

    def __init__(self, cells: int, pass_rate: float, samples: int, replay: float, seed: int) -> None:
        self._pass_rate, self._samples, self._replay, self._seed = pass_rate, samples, replay, seed
        self._seen = [deque[bool](maxlen=samples * _HISTORY_FACTOR) for _ in range(cells)]

    @property
    def buckets(self) -> int:
        return len(self._seen)

    @property
    def retired(self) -> list[int]:
        return [cell for cell, seen in enumerate(self._seen) if self._is_learned(seen)]

    def draw(self, number: int) -> int:
        """The cell of the n-th draw. With everything retired there is nothing better to do than to go on."""
        dice = random.Random(seed_for(self._seed, "cell", number))
        retired = set(self.retired)
        active = [cell for cell in range(len(self._seen)) if cell not in retired]
        pool = sorted(retired) if retired and (not active or dice.random() < self._replay) else active
        return dice.choice(pool)

    def record(self, cell: int, passed: Sequence[bool]) -> None:
        self._seen[cell].extend(passed)

    def state(self) -> list[list[bool]]:
        return [list(seen) for seen in self._seen]

    def restore(self, state: Any) -> None:
        for seen, told in zip(self._seen, state, strict=True):
            seen.clear()
            seen.extend(told)

    def _is_learned(self, seen: deque[bool]) -> bool:
        return len(seen) >= self._samples and sum(seen) >= self._pass_rate * len(seen)
