"""An arm for tests: every rollout has an advantage, so that every batch changes the weights, and its annotator writes
down the groups that it was given."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from gametape.agent.episode import Episode
from gametape.agent.limits import RolloutLimits
from gametape.engines.token_conversation import TokenModel
from gametape.train.algorithms.base import Algorithm
from gametape.train.rollouts import GroupAnnotator, RolloutGroup


class CountingAnnotator:
    """Like a coach it takes one group at a time, and its statistics are half-way while it works on one."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._begun: list[int] = []
        self._done: list[int] = []

    async def annotate(self, group: RolloutGroup, episodes: Sequence[Episode]) -> RolloutGroup:
        async with self._lock:
            self._begun.append(group.request.number)
            await asyncio.sleep(0.05 * len(episodes))
            self._done.append(group.request.number)
            return group

    def state(self) -> dict[str, Any]:
        return {"begun": list(self._begun), "done": list(self._done)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._begun, self._done = list(state["begun"]), list(state["done"])


class CountingArm(Algorithm):
    def score_group(self, group: RolloutGroup) -> Mapping[int, float]:
        return {index: 0.5 if index % 2 else -0.5 for index in range(len(group.rollouts))}

    def make_annotator(self, model: TokenModel, limits: RolloutLimits) -> GroupAnnotator:
        return CountingAnnotator()
