"""How likely the model finds the tokens of a target, without its hint and after it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log1p
from typing import Protocol, runtime_checkable

from gametape.coach.hinted_engine import engine_session
from gametape.core.messages import GenerateRequest, Generation, Sampling
from gametape.core.tokens import TurnTokens
from gametape.engines.chat_formats.protocol import ChatFormat, insert_hint
from gametape.engines.errors import ScoringUnsupported
from gametape.engines.token_conversation import TokenModel

_SUREST = -1e-6
"""Of one action: a log-probability of 0 has no odds."""
_FARTHEST = 50.0
_LEAST = -1e4
"""What counts as impossible is a number too."""


@runtime_checkable
class ScoringEngine(Protocol):
    """An engine that can say how likely given tokens are."""

    async def score(self, ids: Sequence[int], start: int = 1, sampling: Sampling = ...) -> list[float]: ...


@dataclass(frozen=True)
class SpanQuery:
    """A turn to be looked at again. `number` counts the turns from 1; `name` is its own among all that is asked."""

    turn: TurnTokens
    number: int
    span: tuple[int, int]
    name: str

    @property
    def prefix_ids(self) -> list[int]:
        """What the turn held before its span."""
        return self.turn.completion_ids[: self.span[0]]

    @property
    def span_ids(self) -> list[int]:
        return self.turn.completion_ids[slice(*self.span)]

    def prompt(self, dialect: ChatFormat, hint: str) -> list[int]:
        return insert_hint(dialect, self.turn.prompt_ids, hint) if hint else self.turn.prompt_ids


@dataclass(frozen=True)
class SpanScores:
    """Log-probabilities of a span's tokens, for the student, who reads the prompt, and for the teacher, who reads the
    hint besides. `tokens` is how many were read for it."""

    student: list[float]
    teacher: list[float]
    tokens: int

    @property
    def drop(self) -> float:
        """By how much the hint lowers the log-probability of the whole action."""
        return sum(self.student) - sum(self.teacher)

    @property
    def gap(self) -> float:
        """The same in log-odds: what there is to learn from this target. It closes when the student leaves the action
        by itself."""
        return _log_odds(sum(self.student)) - _log_odds(sum(self.teacher))

    @property
    def kl(self) -> float:
        """KL(student || teacher) over the span, estimated at its sampled tokens: `r - 1 - log r` with r the teacher's
        probability over the student's, which is never negative."""
        ratios = (min(after - before, _FARTHEST) for before, after in zip(self.student, self.teacher, strict=True))
        return sum(exp(ratio) - 1 - ratio for ratio in ratios)


async def score_span(model: TokenModel, question: SpanQuery, hint: str) -> SpanScores | None:
    """None where the engine cannot score."""
    engine = model.engine
    if not isinstance(engine, ScoringEngine):
        return None
    prompts = [[*question.prompt(model.chat_format, text), *question.prefix_ids] for text in ("", hint)]

    async def one(prompt: list[int]) -> list[float]:
        with engine_session(engine):
            values = await engine.score([*prompt, *question.span_ids], len(prompt))
            return [min(0.0, max(value, _LEAST)) for value in values]

    try:
        student, teacher = await asyncio.gather(*map(one, prompts))
    except ScoringUnsupported:
        return None
    return SpanScores(student, teacher, sum(len(prompt) + len(question.span_ids) for prompt in prompts))


async def greedy_continuation(model: TokenModel, question: SpanQuery, hint: str, most: int, spoken: bool) -> Generation:
    """What the model likes best after the hint, or without one where it is empty: the turn, or with `spoken` the rest
    of it from the span on."""
    return await sample_continuation(model, question, hint, most, spoken, Sampling(temperature=0.0))


async def sample_continuation(
    model: TokenModel, question: SpanQuery, hint: str, most: int, spoken: bool, sampling: Sampling
) -> Generation:
    """The same, sampled in some way."""
    prompt = [*question.prompt(model.chat_format, hint), *(question.prefix_ids if spoken else ())]
    name = f"{question.name}/{'hinted' if hint else 'plain'}{'/span' if spoken else ''}"
    if sampling.temperature:
        name += "/sampled"
    with engine_session(model.engine):
        return await model.engine.generate(
            GenerateRequest(
                request_id=name,
                conversation_id=name,
                turn=question.number - 1,
                prompt_ids=prompt,
                max_tokens=max(1, min(most, model.window - len(prompt))),
                sampling=sampling,
                stop_ids=list(model.chat_format.stop_ids),
            )
        )


def _log_odds(log_probability: float) -> float:
    sure = min(log_probability, _SUREST)
    return sure - log1p(-exp(sure))
