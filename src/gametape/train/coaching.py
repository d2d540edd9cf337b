"""The coach at work while training: finished groups are looked at, and what it finds becomes targets of the loss."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gametape.agent.limits import Limits
from gametape.agent.playing import Played
from gametape.coach.coach import Coach, Looking
from gametape.coach.scoring import Question, continued
from gametape.coach.statistics import Statistics
from gametape.core.config import RunConfig
from gametape.core.hint import Hint
from gametape.core.messages import Generation, Sampling
from gametape.core.segments import segments
from gametape.engines.hinting import spliced
from gametape.engines.token_conversation import TokenModel
from gametape.train.aims import Aim, aim_at
from gametape.train.batch import advantages_of
from gametape.train.controls import Controls
from gametape.train.references import reference_for
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
        self._model, self._ttf, self._advantage = model, config.ttf, rl.advantage
        self._sampling = Sampling(temperature=rl.temperature, seed=config.seed)
        self._turn_tokens = limits.turn_tokens
        self._controls = Controls(config.ttf, config.seed)
        self._alone = asyncio.Lock()
        self.tape: Tape | None = None
        """The last one that has a target."""

    async def coached(self, group: Group, played: Sequence[Played]) -> Group:
        """One group at a time, so that each is charged what it took."""
        async with self._alone:
            return await self._looked_at(group, played)

    async def _looked_at(self, group: Group, played: Sequence[Played]) -> Group:
        failed = [at for at, rolled in enumerate(group.rollouts) if not (rolled.result.passed or rolled.result.lost)]
        if group.kind == "mixed" and not self._ttf.mixed:
            return group
        chosen = failed[: self._ttf.per_group]
        before = self._coach.cost.tokens
        names = [f"d{group.draw.number:08}.{at:03}" for at in chosen]
        secret = reference_for(played[0].assignment)
        pairs = zip(chosen, names, strict=True)
        found = await asyncio.gather(*(self._coach.look(played[at], self._model, name, secret) for at, name in pairs))
        aims = [
            Aimed(at, *self._aim(played[at], self._controls.spoilt(hint, played[at]), name))
            for at, name, hints in zip(chosen, names, found, strict=True)
            for hint in hints
            if hint.used
        ]
        sampled = 0
        if self._ttf.learn == "resample":
            aims, sampled = await self._resampled(aims, played)
        if aims:
            at = aims[0].rollout
            advantage = advantages_of(group, self._advantage).get(at, 0.0)
            self.tape = Tape(names[chosen.index(at)], played[at], found[chosen.index(at)], advantage)
        return replace(group, aims=tuple(aims), coach_tokens=self._coach.cost.tokens - before + sampled)

    def state(self) -> dict[str, Any]:
        return {"statistics": self._coach.statistics.plain(), "controls": self._controls.texts}

    def restore(self, state: dict[str, Any]) -> None:
        self._coach.statistics = Statistics.from_plain(state["statistics"])
        self._controls.texts = state["controls"]

    def _aim(self, played: Played, hint: Hint, name: str) -> tuple[int, Aim]:
        step = next(step for step in played.steps if step.step_id == hint.step)
        tokens = step.tokens()
        assert tokens is not None
        prompt = spliced(self._model.dialect, tokens.prompt_ids, hint.text)
        number, aim = aim_at(segments(played.steps), hint.step, prompt, hint.type, hint.text)
        learn = self._ttf.learn
        weight = 1.0 if learn == "kl" else self._ttf.weight
        aim = replace(aim, rollout=name, weight=weight, learn=learn)
        first, stop = hint.span
        if learn == "resample" or (first, stop) == (0, aim.length):
            return number, aim
        spoken = tokens.completion_ids[:first]
        return number, replace(aim, start=aim.start + first, length=stop - first, inserted=(*aim.inserted, *spoken))

    async def _resampled(self, aims: Sequence[Aimed], played: Sequence[Played]) -> tuple[list[Aimed], int]:
        """With what the policy says at each target after the hint; and how many tokens that took."""
        said = await asyncio.gather(*(self._said(one.aim, played[one.rollout]) for one in aims))
        spoken = (tuple(generation.completion_ids) for generation in said)
        usages = (generation.usage for generation in said)
        return (
            [replace(one, aim=replace(one.aim, resampled=ids)) for one, ids in zip(aims, spoken, strict=True)],
            sum(usage.prompt_tokens + usage.completion_tokens for usage in usages),
        )

    async def _said(self, aim: Aim, played: Played) -> Generation:
        turns = [step for step in played.steps if step.source == "agent"]
        number = next(at for at, step in enumerate(turns, start=1) if step.step_id == aim.step)
        tokens = turns[number - 1].tokens()
        assert tokens is not None
        whole = (0, len(tokens.completion_ids))
        question = Question(tokens, number, whole, f"resample/{aim.rollout}/{aim.step}")
        return await continued(self._model, question, aim.text, self._turn_tokens, False, self._sampling)
