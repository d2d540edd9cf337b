"""Where finished groups come from. In one process with the learner, or in a process of its own (`apart`)."""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor

from gametape.agent.limits import Limits, Over, Spent
from gametape.agent.playing import Played, play, setting_for
from gametape.core.messages import Sampling
from gametape.engines.token_conversation import TokenModel
from gametape.evals.suites import Item
from gametape.sandbox.launcher import SandboxError
from gametape.train.rolled import Draw, Group, Rolled
from gametape.train.seeds import seed_for
from gametape.train.supply import Supply


class Source(Protocol):
    """Gives finished, judged groups with the versions of the weights that sampled them."""

    def order(self, draw: Draw) -> None:
        """Ask for a group. What has been ordered is played in this order, as far as there is room."""
        ...

    async def take(self) -> Group:
        """The next finished group of those ordered."""
        ...

    def finished(self) -> list[Group]:
        """Those of the ordered groups that can be had without waiting."""
        ...

    async def publish(self, version: int, weights: dict[str, Tensor]) -> None:
        """Sample with these from now on."""
        ...

    async def close(self) -> None: ...


class Players:
    """Plays assignments with one model, many at once. Every rollout's seed comes from its draw and its number."""

    def __init__(self, model: TokenModel, supply: Supply, limits: Limits, temperature: float, seed: int) -> None:
        self.model, self._supply, self._limits = model, supply, limits
        self._temperature, self._seed = temperature, seed

    async def group(self, draw: Draw, size: int) -> tuple[Group, Sequence[Played]]:
        """Its first rollout is also kept in words: what all have in common comes from their prompt, and is no habit."""
        prompt = self._supply.prompt(draw)
        names = [f"d{draw.number:08}.{member:03}" for member in range(size)]
        played = await asyncio.gather(*(self.attempt(prompt, name) for name in names))
        return Group(draw, tuple(Rolled.of(each, in_words=at == 0) for at, each in enumerate(played))), played

    async def attempt(self, prompt: Item, name: str) -> Played:
        """`name` is this attempt's in the whole run: its seed, and its turn in the engine, follow from it."""
        sampling = Sampling(temperature=self._temperature, seed=seed_for(self._seed, name))
        engine: Any = self.model.engine
        assignment = prompt.assignment
        setting = setting_for(assignment, prompt.spoken(self.model), sampling, self._limits, name)
        try:
            with engine.player():
                return await play(assignment, setting)
        except SandboxError as error:
            return Played(assignment, [], Over("error", str(error)), None, Spent())


class Looker(Protocol):
    """Adds to a finished group what it finds in it."""

    async def coached(self, group: Group, played: Sequence[Played]) -> Group: ...


class NobodyLooks:
    async def coached(self, group: Group, played: Sequence[Played]) -> Group:  # noqa: ARG002
        return group


class InProcess:
    """A `Source` on the learner's own tensors: what is taken was sampled by the weights as they are now.

    Whoever changes them tells the engine.
    """

    def __init__(self, players: Players, group_size: int, looker: Looker) -> None:
        self._players, self._size, self._looker = players, group_size, looker
        self._ordered: list[Draw] = []
        self._finished: list[Group] = []

    def order(self, draw: Draw) -> None:
        self._ordered.append(draw)

    async def take(self) -> Group:
        """All that is ordered is played at once: the engine batches it."""
        if not self._finished:
            draws, self._ordered = self._ordered, []
            played = await asyncio.gather(*(self._players.group(draw, self._size) for draw in draws))
            self._finished = [await self._looker.coached(group, each) for group, each in played]
        return self._finished.pop(0)

    def finished(self) -> list[Group]:
        groups, self._finished = self._finished, []
        return groups

    async def publish(self, version: int, weights: dict[str, Tensor]) -> None:
        """They are its own."""

    async def close(self) -> None:
        await self._players.model.close()
