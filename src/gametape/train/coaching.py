"""The coach at work while training: finished groups are looked at, and what it finds becomes targets of the loss."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gametape.agent.limits import Limits
from gametape.agent.playing import Played
from gametape.coach.coach import Coach, Looking
from gametape.coach.statistics import Statistics
from gametape.core.config import RunConfig
from gametape.core.hint import Hint
from gametape.core.segments import segments
from gametape.engines.hinting import spliced
from gametape.engines.token_conversation import TokenModel
from gametape.train.aims import Aim, aim_at
from gametape.train.batch import advantages_of
from gametape.train.rolled import Aimed, Group


@dataclass(frozen=True)
class Tape:
    """A rollout with what the coach said about it."""

    name: str
    played: Played
    hints: Sequence[Hint]
    advantage: float


class Coaching:
    """Looks at the failures of a group, a few of each, and charges what that takes."""

    def __init__(self, config: RunConfig, model: TokenModel, limits: Limits) -> None:
        gates, rl = config.gates, config.rl
        looking = Looking(
            gates=frozenset(("g0", "g1", "g2")) if config.gated else frozenset(),
            delta=gates.delta,
            forks=gates.min_forks,
            confidence=gates.min_posterior,
            temperature=rl.temperature,
            limits=limits,
        )
        self._coach = Coach(looking)
        self._model, self._most, self._advantage = model, config.ttf.per_group, rl.advantage
        self._alone = asyncio.Lock()
        self.tape: Tape | None = None
        """The last one that has a target."""

    async def coached(self, group: Group, played: Sequence[Played]) -> Group:
        """One group at a time, so that each is charged what it took."""
        async with self._alone:
            return await self._looked_at(group, played)

    async def _looked_at(self, group: Group, played: Sequence[Played]) -> Group:
        failed = [at for at, rolled in enumerate(group.rollouts) if not (rolled.result.passed or rolled.result.lost)]
        chosen = failed[: self._most]
        before = self._coach.cost.tokens
        names = [f"d{group.draw.number:08}.{at:03}" for at in chosen]
        looks = (self._coach.look(played[at], self._model, name) for at, name in zip(chosen, names, strict=True))
        found = await asyncio.gather(*looks)
        aims = tuple(
            Aimed(at, *self._aim(played[at], hint, name))
            for at, name, hints in zip(chosen, names, found, strict=True)
            for hint in hints
            if hint.used
        )
        if aims:
            at = aims[0].rollout
            advantage = advantages_of(group, self._advantage).get(at, 0.0)
            self.tape = Tape(names[chosen.index(at)], played[at], found[chosen.index(at)], advantage)
        return replace(group, aims=aims, coach_tokens=self._coach.cost.tokens - before)

    def state(self) -> dict[str, Any]:
        return self._coach.statistics.plain()

    def restore(self, state: dict[str, Any]) -> None:
        self._coach.statistics = Statistics.from_plain(state)

    def _aim(self, played: Played, hint: Hint, name: str) -> tuple[int, Aim]:
        step = next(step for step in played.steps if step.step_id == hint.step)
        tokens = step.tokens()
        assert tokens is not None
        prompt = spliced(self._model.dialect, tokens.prompt_ids, hint.text)
        number, aim = aim_at(segments(played.steps), hint.step, prompt, hint.type, hint.text)
        first, stop = hint.span
        spoken = tokens.completion_ids[:first]
        narrowed = replace(aim, start=aim.start + first, length=stop - first, inserted=(*aim.inserted, *spoken))
        return number, replace(narrowed if first or stop < aim.length else aim, rollout=name)
