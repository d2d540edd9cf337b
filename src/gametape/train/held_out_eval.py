"""Held-out success: the same prompts at every look, none of which is ever trained on."""

import asyncio
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from gametape.agent.episode import Episode
from gametape.agent.limits import RolloutLimits
from gametape.coach.hinted_engine import with_hints
from gametape.core.config import EvalConfig
from gametape.core.seeds import seed_for
from gametape.core.token_segments import TokenSegment, split_segments
from gametape.engines.token_conversation import TokenModel
from gametape.tasks.worlds.world import World
from gametape.train.prompts import PromptDataset
from gametape.train.sources import RolloutWorker

_HINTED_PROMPTS = 64
"""Prompts that are played once more with hints."""


@dataclass(frozen=True)
class HeldOutScore:
    """`load_bearing` and `ordinary` are shares of turns that went right, where the judge can tell."""

    episodes: int
    success: float
    load_bearing: float | None
    ordinary: float | None
    hinted: float | None
    """The share of load-bearing turns that go right when the rule is said before them: can the policy read hints?"""
    infra_errors: int
    """Attempts in which the machinery failed; they count in nothing."""
    read: int
    generated: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class HeldOutEvaluator:
    """Plays a fixed list of prompts with fixed seeds, so that two looks differ by the weights alone."""

    def __init__(
        self, model: TokenModel, dataset: PromptDataset, limits: RolloutLimits, config: EvalConfig, seed: int
    ) -> None:
        self._players = RolloutWorker(model, dataset, limits, config.temperature, seed_for(seed, "held out"))
        self._prompts = [dataset.held_out(number) for number in range(config.episodes)]
        self.successes: list[list[TokenSegment]] = []
        """Of the last look, in lines of ids."""

    def weights_changed(self, version: int) -> None:
        """The model's tensors are of this version now, and nothing is left of what it has read."""
        engine: Any = self._players.model.engine
        engine.weights_changed(version)
        engine.forget()

    async def evaluate(self) -> HeldOutScore:
        """Their names come before those of any draw, so they are the same whatever else is under way."""
        attempts = (self._players.run_episode(prompt, f"a{at:06}") for at, prompt in enumerate(self._prompts))
        played = await asyncio.gather(*attempts)
        self.successes = [split_segments(each.steps) for each in played if each.score and each.score.passed]
        return held_out_score(played, await self._hinted())

    async def _hinted(self) -> float | None:
        """In worlds, where the rules are known; on some of the prompts."""
        played = []
        for at, prompt in enumerate(self._prompts[:_HINTED_PROMPTS]):
            if isinstance(prompt.environment, World):
                jobs = enumerate(prompt.environment.plan.jobs, start=1)
                hints = {turn: job.hint() for turn, job in jobs if job.marking}
                told = replace(prompt, adapt_model=partial(with_hints, hints=hints))
                played.append(self._players.run_episode(told, f"b{at:06}"))
        return held_out_score(await asyncio.gather(*played), None).load_bearing if played else None


def held_out_score(episodes: list[Episode], hinted_rate: float | None) -> HeldOutScore:
    judged = [each.score for each in episodes if each.score]
    marks = [mark for one in judged for mark in one.marks]
    return HeldOutScore(
        episodes=len(judged),
        success=sum(one.passed for one in judged) / max(1, len(judged)),
        load_bearing=_share([mark.correct for mark in marks if mark.load_bearing]),
        ordinary=_share([mark.correct for mark in marks if not mark.load_bearing]),
        hinted=hinted_rate,
        infra_errors=len(episodes) - len(judged),
        read=sum(each.usage.prompt_tokens - each.usage.cached_tokens for each in episodes),
        generated=sum(each.usage.completion_tokens for each in episodes),
    )


def _share(rights: list[bool]) -> float | None:
    return sum(rights) / len(rights) if rights else None
