"""Where prompts come from: cells to draw from while training, and a list that is held out."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gametape.agent.sandboxed import Playground
from gametape.core.errors import BadInput
from gametape.evals.suites import WORLDS, Item, find, of_task, of_world
from gametape.tasks.worlds.presets import preset
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.world import World
from gametape.train.rolled import Draw
from gametape.train.seeds import seed_for
from gametape.verify.subject import Subject

_ONE_IN = 5
"""Of task directories, so many are held out."""


class Supply(Protocol):
    @property
    def cells(self) -> Sequence[str]: ...

    def prompt(self, draw: Draw) -> Item: ...

    def held_out(self, number: int) -> Item:
        """The n-th prompt that is never trained on."""
        ...


@dataclass(frozen=True)
class WorldSupply:
    """Worlds without end. Held out are pairs of a rule and a context that no training world has in it."""

    specs: tuple[WorldSpec, ...]
    seed: int

    @property
    def cells(self) -> Sequence[str]:
        return [spec.cell for spec in self.specs]

    def prompt(self, draw: Draw) -> Item:
        return of_world(World(self.specs[draw.cell].model_copy(update={"seed": draw.seed, "split": "train"})))

    def held_out(self, number: int) -> Item:
        spec = self.specs[number % len(self.specs)]
        seed = seed_for(self.seed, "held out", number)
        return of_world(World(spec.model_copy(update={"seed": seed, "split": "held_out"})))


@dataclass(frozen=True)
class TaskSupply:
    """Task directories, each a cell of its own; one in five is held out."""

    items: tuple[Item, ...]

    @property
    def cells(self) -> Sequence[str]:
        return [item.assignment.name for item in self._taught]

    def prompt(self, draw: Draw) -> Item:
        return self._taught[draw.cell]

    def held_out(self, number: int) -> Item:
        kept = self.items[::_ONE_IN]
        return kept[number % len(kept)]

    @property
    def _taught(self) -> list[Item]:
        return [item for at, item in enumerate(self.items) if at % _ONE_IN]


@asynccontextmanager
async def supplied(tasks: str, seed: int, home: Path, turns: int) -> AsyncIterator[Supply]:
    """What `tasks` of a configuration names, ready to be played in at most so many turns."""
    if tasks.startswith(WORLDS):
        yield WorldSupply((preset(tasks.removeprefix(WORLDS)),), seed)
        return
    worlds: list[World] = []
    subjects: list[Subject] = []
    for one in find(tasks, home):
        if isinstance(one, World):
            worlds.append(one)
        else:
            subjects.append(one)
    if worlds:
        yield WorldSupply(tuple({world.cell: world.spec for world in worlds}.values()), seed)
        return
    if len(subjects) < 2:
        raise BadInput(f"tasks: {tasks}: at least two tasks are needed, one of them to be held out")
    async with Playground(home) as playground:
        yield TaskSupply(tuple(of_task(subject, playground, home, turns) for subject in subjects))
