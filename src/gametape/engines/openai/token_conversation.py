"""Conversations with a server in token ids, whose turns can be trained on."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Self

from gametape.core.messages import GenerateRequest, Generation, Sampling, WeightUpdate
from gametape.core.protocols import PolicyEngine
from gametape.engines.conversation import Reply, ToolDefinition, ToolResponse
from gametape.engines.openai.engine import ServerEngine
from gametape.engines.openai.server_tokenizer import TokenizerCache, TokenizerCacheMiss
from gametape.engines.server.client import ServerClient
from gametape.engines.server.streamed_calls import estimate_tokens
from gametape.engines.token_conversation import TokenConversation

_OPENING_TOKENS = 64
"""An estimate of the tokens that the chat format itself writes at the beginning."""


class ServerTokenConversation:
    """A `TokenConversation` that fetches what the tokenizer cache lacks from the server.

    `exact_logprobs` says whether the server's log-probabilities are those of the distribution it samples from. Where
    they are not, and the sampling makes a difference, replies come without them: the ids are still exact.
    """

    def __init__(
        self,
        inner: TokenConversation,
        engine: ServerEngine,
        client: ServerClient,
        tokenizer_cache: TokenizerCache,
        exact_logprobs: bool,
    ) -> None:
        self._inner = inner
        self._engine = engine
        self._client = client
        self._cache = tokenizer_cache
        self._exact_logprobs = exact_logprobs or is_unmodified(inner.sampling)
        self._counted = 0
        self._estimated = 0
        self._reset_engine()

    @property
    def length(self) -> int:
        """Exact where all of it has been tokenised; messages since the last turn are estimated."""
        try:
            return self._inner.length
        except TokenizerCacheMiss:
            return self._counted + self._estimated

    def begin(self, system: str, tools: Sequence[ToolDefinition], user: str) -> None:
        self._inner.begin(system, tools, user)
        described = sum(2 * estimate_tokens(tool) for tool in tools) + _OPENING_TOKENS
        self._counted, self._estimated = 0, estimate_tokens({"system": system, "user": user}) + described

    def add_user_message(self, text: str) -> None:
        self._inner.add_user_message(text)
        self._estimated += estimate_tokens({"user": text})

    def add_tool_responses(self, responses: Sequence[ToolResponse]) -> None:
        self._inner.add_tool_responses(responses)
        self._estimated += sum(estimate_tokens({response.call.name: response.content}) for response in responses)

    async def ask(self, max_tokens: int) -> Reply:
        while True:
            try:
                reply = self._client.clean_reply(await self._inner.ask(max_tokens))
            except TokenizerCacheMiss as miss:
                await self._cache.fetch(self._client, miss.query)
            else:
                self._reset_engine()
                self._count(reply)
                return reply if self._exact_logprobs else _without_logprobs(reply)

    def replay(self, reply: Reply) -> None:
        self._inner.replay(reply)
        self._count(reply)

    def skip_turns(self, count: int) -> None:
        self._inner.skip_turns(count)

    def fork(self) -> Self:
        other = copy(self)
        other._inner = self._inner.fork()
        other._reset_engine()
        return other

    def _count(self, reply: Reply) -> None:
        if reply.tokens is not None:
            self._counted, self._estimated = len(reply.tokens.prompt_ids) + len(reply.tokens.completion_ids), 0

    def _reset_engine(self) -> None:
        self._inner.engine = _MemoizedEngine(self._engine)


class _MemoizedEngine(PolicyEngine):
    """An engine that does not sample twice for the same request: its reply may take several tries to be parsed."""

    def __init__(self, engine: ServerEngine) -> None:
        self._engine = engine
        self._last: tuple[GenerateRequest, Generation] | None = None

    async def generate(self, request: GenerateRequest) -> Generation:
        if self._last is None or self._last[0] != request:
            self._last = (request, await self._engine.generate(request))
        return self._last[1]

    async def update_weights(self, update: WeightUpdate) -> None:
        await self._engine.update_weights(update)

    async def policy_version(self) -> int:
        return await self._engine.policy_version()


def is_unmodified(sampling: Sampling) -> bool:
    """Whether tokens are sampled from the model's own distribution, or are the likeliest under it."""
    return sampling.temperature in {0.0, 1.0} and sampling.top_p == 1.0 and sampling.top_k == 0


def _without_logprobs(reply: Reply) -> Reply:
    if reply.tokens is None:
        return reply
    return replace(reply, tokens=reply.tokens.model_copy(update={"logprobs": None}))
