"""A source of demonstrations in place of rollouts: what supervised training learns from, counted as episodes."""

from dataclasses import replace

from torch import Tensor

from gametape.core.errors import BadInput
from gametape.engines.dialect import Dialect
from gametape.tasks.worlds.experts import Noisy
from gametape.tasks.worlds.world import World
from gametape.train.demonstrations import demonstrate
from gametape.train.rolled import Draw, Group, Rolled
from gametape.train.seeds import seed_for
from gametape.train.supply import Supply


class Shown:
    """A `Source`. The expert is right at ordinary turns with probability `skill`, and keeps to rules as often as the
    world's base rate says: it knows no more than the policy that it taught."""

    def __init__(self, supply: Supply, dialect: Dialect, skill: float, size: int, seed: int) -> None:
        self._supply, self._dialect, self._skill, self._size, self._seed = supply, dialect, skill, size, seed
        self._ordered: list[Draw] = []

    def order(self, draw: Draw) -> None:
        self._ordered.append(draw)

    async def take(self) -> Group:
        draw = self._ordered.pop(0)
        world = self._supply.prompt(draw).assignment
        if not isinstance(world, World):
            raise BadInput("demonstrations are there for worlds only: take another arm, or give worlds:NAME as tasks")
        expert = Noisy(self._skill, world.spec.base_rate)
        seeds = [seed_for(self._seed, "shown", draw.number, member) for member in range(self._size)]
        shown = [await demonstrate(world, expert, self._dialect, seed) for seed in seeds]
        return Group(draw, tuple(_given(Rolled.of(one.played)) for one in shown))

    def finished(self) -> list[Group]:
        return []

    async def publish(self, version: int, weights: dict[str, Tensor]) -> None:
        """An expert learns nothing."""

    async def close(self) -> None:
        """There is nothing to close."""


def _given(rolled: Rolled) -> Rolled:
    """Written down by somebody who knows: no weights sampled it, and no engine read it."""
    lines = (replace(line, policy_versions=[-1] * len(line.ids)) for line in rolled.segments)
    return replace(rolled, segments=tuple(lines), read=0, generated=0)
