"""Held-out success: the same prompts at every look, none of which is ever trained on."""

import asyncio
from dataclasses import asdict, dataclass
from typing import Any

from gametape.agent.limits import Limits
from gametape.agent.playing import Played
from gametape.core.config import EvalConfig
from gametape.engines.token_conversation import TokenModel
from gametape.train.seeds import seed_for
from gametape.train.source import Players
from gametape.train.supply import Supply


@dataclass(frozen=True)
class Score:
    """`load_bearing` and `ordinary` are shares of turns that went right, where the judge can tell."""

    episodes: int
    success: float
    load_bearing: float | None
    ordinary: float | None
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

    def changed(self, version: int) -> None:
        """The model's tensors are of this version now, and nothing is left of what it has read."""
        engine: Any = self._players.model.engine
        engine.changed(version)
        engine.forget()

    async def score(self) -> Score:
        """Their names come before those of any draw, so they are the same whatever else is under way."""
        attempts = (self._players.attempt(prompt, f"a{at:06}") for at, prompt in enumerate(self._prompts))
        return score_of(await asyncio.gather(*attempts))


def score_of(played: list[Played]) -> Score:
    judged = [each.judged for each in played if each.judged]
    marks = [mark for one in judged for mark in one.marks]
    return Score(
        episodes=len(judged),
        success=sum(one.passed for one in judged) / max(1, len(judged)),
        load_bearing=_share([mark.right for mark in marks if mark.load_bearing]),
        ordinary=_share([mark.right for mark in marks if not mark.load_bearing]),
        lost=len(played) - len(judged),
        read=sum(each.spent.prompt_tokens - each.spent.cached_tokens for each in played),
        generated=sum(each.spent.completion_tokens for each in played),
    )


def _share(rights: list[bool]) -> float | None:
    return sum(rights) / len(rights) if rights else None
