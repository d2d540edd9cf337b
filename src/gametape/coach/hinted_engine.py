"""An engine that inserts a hint before chosen turns. The record of a rollout holds the prompt without the hint, and the
sampled tokens are scored there.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from gametape.core.messages import GenerateRequest, Generation, WeightUpdate
from gametape.core.protocols import PolicyEngine
from gametape.engines.chat_formats.protocol import ChatFormat, insert_hint
from gametape.engines.errors import ContextTooLong
from gametape.engines.token_conversation import TokenModel


@dataclass(frozen=True)
class HintedEngine(PolicyEngine):
    """Wraps another engine. `hints` are by turn, counted from 1."""

    engine: PolicyEngine
    chat_format: ChatFormat
    window: int
    """In ids."""
    hints: Mapping[int, str]

    async def generate(self, request: GenerateRequest) -> Generation:
        text = self.hints.get(request.turn + 1)
        if text is None:
            return await self.engine.generate(request)
        prompt = insert_hint(self.chat_format, request.prompt_ids, text)
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

    def participant(self) -> AbstractContextManager[None]:
        return self.engine.participant()


def with_hints(model: TokenModel, hints: Mapping[int, str]) -> TokenModel:
    """The same model with these hints inserted before these turns."""
    return (
        replace(model, engine=HintedEngine(model.engine, model.chat_format, model.window_ids, hints))
        if hints
        else model
    )


def hint_ids(chat_format: ChatFormat, prompt_ids: Sequence[int], text: str) -> list[int]:
    """The ids that a hint inserts before the turn begins, the markers of its message included."""
    ids, header = insert_hint(chat_format, prompt_ids, text), len(chat_format.header)
    if header and prompt_ids[-header:] == list(chat_format.header):
        return ids[len(prompt_ids) - header : len(ids) - header]
    return ids[len(prompt_ids) :]
