"""Held-out success: the same prompts at every look, none of which is ever trained on."""

import asyncio
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from gametape.agent.limits import Limits
from gametape.agent.playing import Played
from gametape.coach.hinted_engine import hinted
from gametape.core.config import EvalConfig
from gametape.core.segments import Segment, segments
from gametape.engines.token_conversation import TokenModel
from gametape.tasks.worlds.world import World
from gametape.train.seeds import seed_for
from gametape.train.source import Players
from gametape.train.supply import Supply

_HINTED = 64
"""Prompts that are played once more with hints."""


@dataclass(frozen=True)
class Score:
    """`load_bearing` and `ordinary` are shares of turns that went right, where the judge can tell."""

    episodes: int
    success: float
    load_bearing: float | None
    ordinary: float | None
    hinted: float | None
    """The share of load-bearing turns that go right when the rule is said before them: can the policy read hints?"""
    lost: int
    """Attempts in which the machinery failed; they count in nothing."""
    read: int
    generated: int

    def plain(self) -> dict[str, Any]:
        return asdict(self)


class HeldOut:
    """Plays a fixed list of prompts with fixed seeds, so that two looks differ by the weights alone."""

    def __init__(self, model: TokenModel, supply: Supply, limits: Limits, config: EvalConfig, seed: int) -> None:
        self._players = Players(model, supply, limits, config.temperature, seed_for(seed, "held out"))
        self._prompts = [supply.held_out(number) for number in range(config.episodes)]
        self.successes: list[list[Segment]] = []
        """Of the last look, in lines of ids."""

    def changed(self, version: int) -> None:
        """The model's tensors are of this version now, and nothing is left of what it has read."""
        engine: Any = self._players.model.engine
        engine.changed(version)
        engine.forget()

    async def score(self) -> Score:
        """Their names come before those of any draw, so they are the same whatever else is under way."""
        attempts = (self._players.attempt(prompt, f"a{at:06}") for at, prompt in enumerate(self._prompts))
        played = await asyncio.gather(*attempts)
        self.successes = [segments(each.steps) for each in played if each.judged and each.judged.passed]
        return score_of(played, await self._hinted())

    async def _hinted(self) -> float | None:
        """In worlds, where the rules are known; on some of the prompts."""
        played = []
        for at, prompt in enumerate(self._prompts[:_HINTED]):
            if isinstance(prompt.assignment, World):
                jobs = enumerate(prompt.assignment.plan.jobs, start=1)
                hints = {turn: job.hint() for turn, job in jobs if job.marking}
                told = replace(prompt, spoken=partial(hinted, hints=hints))
                played.append(self._players.attempt(told, f"b{at:06}"))
        return score_of(await asyncio.gather(*played), None).load_bearing if played else None


def score_of(played: list[Played], hinted_rate: float | None) -> Score:
    judged = [each.judged for each in played if each.judged]
    marks = [mark for one in judged for mark in one.marks]
    return Score(
        episodes=len(judged),
        success=sum(one.passed for one in judged) / max(1, len(judged)),
        load_bearing=_share([mark.right for mark in marks if mark.load_bearing]),
        ordinary=_share([mark.right for mark in marks if not mark.load_bearing]),
        hinted=hinted_rate,
        lost=len(played) - len(judged),
        read=sum(each.spent.prompt_tokens - each.spent.cached_tokens for each in played),
        generated=sum(each.spent.completion_tokens for each in played),
    )


def _share(rights: list[bool]) -> float | None:
    return sum(rights) / len(rights) if rights else None
