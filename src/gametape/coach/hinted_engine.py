"""Hinted play: the model reads one more line before chosen turns, and the record does not know of it.

What is sampled so stands in the record after the prompt without the hint, which is where it is scored.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from gametape.core.messages import GenerateRequest, Generation, WeightUpdate
from gametape.core.protocols import PolicyEngine
from gametape.engines.chat_formats.protocol import ChatFormat, insert_hint
from gametape.engines.errors import ContextTooLong
from gametape.engines.token_conversation import TokenModel


@dataclass(frozen=True)
class HintedEngine:
    """An `Engine` over another. `hints` are by turn, counted from 1."""

    engine: PolicyEngine
    dialect: ChatFormat
    window: int
    hints: Mapping[int, str]

    async def generate(self, request: GenerateRequest) -> Generation:
        text = self.hints.get(request.turn + 1)
        if text is None:
            return await self.engine.generate(request)
        prompt = insert_hint(self.dialect, request.prompt_ids, text)
        room = self.window - len(prompt)
        if room < 1:
            raise ContextTooLong(
                f"with its hint the conversation has {len(prompt)} tokens; the window holds {self.window}"
            )
        update = {"prompt_ids": prompt, "max_tokens": min(request.max_tokens, room)}
        return await self.engine.generate(request.model_copy(update=update))

    async def update_weights(self, update: WeightUpdate) -> None:
        await self.engine.update_weights(update)

    async def policy_version(self) -> int:
        return await self.engine.policy_version()


def with_hints(model: TokenModel, hints: Mapping[int, str]) -> TokenModel:
    """The same model, told these lines before these turns."""
    return replace(model, engine=HintedEngine(model.engine, model.chat_format, model.window, hints)) if hints else model


def hint_ids(dialect: ChatFormat, prompt_ids: list[int], text: str) -> list[int]:
    """What a hint puts in before the turn begins, the marks of its message included."""
    ids, header = insert_hint(dialect, prompt_ids, text), len(dialect.header)
    if header and prompt_ids[-header:] == list(dialect.header):
        return ids[len(prompt_ids) - header : len(ids) - header]
    return ids[len(prompt_ids) :]


def engine_session(engine: object) -> AbstractContextManager[None]:
    """For engines that step only when everybody waits: here is one more who asks."""
    if isinstance(engine, HintedEngine):
        return engine_session(engine.engine)
    participant = getattr(engine, "participant", None)
    return participant() if participant else nullcontext()
