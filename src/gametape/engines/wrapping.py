"""A conversation around another: what does not say otherwise, it does as the inner one does."""

from collections.abc import Sequence
from copy import copy
from typing import Self

from gametape.engines.conversation import Answer, Conversation, Reply, ToolDefinition


class WrappedConversation:
    """To be derived from. A fork has a fork of the inner conversation, and shares the rest."""

    def __init__(self, inner: Conversation) -> None:
        self._inner = inner

    @property
    def length(self) -> int:
        return self._inner.length

    def begin(self, system: str, tools: Sequence[ToolDefinition], user: str) -> None:
        self._inner.begin(system, tools, user)

    def tell(self, text: str) -> None:
        self._inner.tell(text)

    def answer(self, answers: Sequence[Answer]) -> None:
        self._inner.answer(answers)

    async def ask(self, max_tokens: int) -> Reply:
        return await self._inner.ask(max_tokens)

    def recall(self, reply: Reply) -> None:
        self._inner.recall(reply)

    def fork(self) -> Self:
        other = copy(self)
        other._inner = self._inner.fork()
        return other
