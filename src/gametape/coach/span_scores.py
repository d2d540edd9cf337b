"""The log-probabilities of a span of tokens without a hint and after it, and continuations from there."""

import asyncio
from dataclasses import dataclass
from math import exp, log1p

from gametape.core.messages import GenerateRequest, Generation, Sampling
from gametape.core.tokens import TurnTokens
from gametape.engines.chat_formats.protocol import ChatFormat, insert_hint
from gametape.engines.token_conversation import TokenModel

_SUREST = -1e-6
"""The largest log-probability of an action that is used: 0 has no odds."""
_FARTHEST = 50.0
_LEAST = -1e4
"""The smallest log-probability that is used, so that an impossible token has a finite one."""


@dataclass(frozen=True)
class SpanQuery:
    """A span of a turn to score. `number` counts the turns from 1; `name` is unique among all queries."""

    turn: TurnTokens
    number: int
    span: tuple[int, int]
    name: str

    @property
    def prefix_ids(self) -> list[int]:
        """The tokens of the turn before its span."""
        return self.turn.completion_ids[: self.span[0]]

    @property
    def span_ids(self) -> list[int]:
        return self.turn.completion_ids[slice(*self.span)]

    def prompt(self, chat_format: ChatFormat, hint: str) -> list[int]:
        return insert_hint(chat_format, self.turn.prompt_ids, hint) if hint else list(self.turn.prompt_ids)


@dataclass(frozen=True)
class SpanScores:
    """Log-probabilities of a span's tokens for the student, which reads the prompt, and the teacher, which reads the
    hint too. `tokens` is how many were read for both."""

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


async def score_span(model: TokenModel, query: SpanQuery, hint: str) -> SpanScores | None:
    """None where the engine cannot score."""
    engine = model.engine
    prompts = [[*query.prompt(model.chat_format, text), *query.prefix_ids] for text in ("", hint)]

    async def logprobs(prompt: list[int]) -> list[float] | None:
        with engine.participant():
            values = await engine.score([*prompt, *query.span_ids], len(prompt))
            return values and [min(0.0, max(value, _LEAST)) for value in values]

    student, teacher = await asyncio.gather(*map(logprobs, prompts))
    if student is None or teacher is None:
        return None
    return SpanScores(student, teacher, sum(len(prompt) + len(query.span_ids) for prompt in prompts))


async def greedy_continuation(
    model: TokenModel, query: SpanQuery, hint: str, max_tokens: int, from_span: bool
) -> Generation:
    """The model's greedy turn after the hint (an empty hint is none); with `from_span` its rest from the span on."""
    return await sample_continuation(model, query, hint, max_tokens, from_span, Sampling(temperature=0.0))


async def sample_continuation(
    model: TokenModel, query: SpanQuery, hint: str, max_tokens: int, from_span: bool, sampling: Sampling
) -> Generation:
    """The same with this sampling."""
    prompt = [*query.prompt(model.chat_format, hint), *(query.prefix_ids if from_span else ())]
    name = f"{query.name}/{'hinted' if hint else 'plain'}{'/span' if from_span else ''}"
    if sampling.temperature:
        name += "/sampled"
    with model.engine.participant():
        return await model.engine.generate(
            GenerateRequest(
                request_id=name,
                conversation_id=name,
                turn=query.number - 1,
                prompt_ids=prompt,
                max_tokens=max(1, min(max_tokens * model.ids_per_token, model.window_ids - len(prompt))),
                sampling=sampling,
                stop_ids=list(model.chat_format.stop_ids),
            )
        )


def _log_odds(log_probability: float) -> float:
    sure = min(log_probability, _SUREST)
    return sure - log1p(-exp(sure))
