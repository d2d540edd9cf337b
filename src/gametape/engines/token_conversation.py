"""Conversations in token ids: sampled ids are kept as they were sampled, and only new text is tokenised."""

import hashlib
import uuid
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Self

from gametape.core.errors import BadInput
from gametape.core.messages import GenerateRequest, Generation, Sampling, TokenUsage
from gametape.core.protocols import PolicyEngine
from gametape.core.token_prefix import TokenPrefix, as_prefix
from gametape.core.tokens import TurnTokens
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.engines.conversation import Reply, ToolDefinition, ToolResponse
from gametape.engines.errors import ContextTooLong, EngineError

_NOT_CONSTRAINED = "no tool call is forced: the engine cannot hold replies to a grammar"


@dataclass(frozen=True)
class _PendingMessage:
    """What comes before the model's next turn and is not tokenised yet."""

    opening: tuple[str, tuple[ToolDefinition, ...], str] | None = None
    responses: tuple[ToolResponse, ...] = ()
    user: str = ""

    def encode(self, chat_format: ChatFormat) -> list[int]:
        """As one message, because a turn of the model follows each: the user's text goes to the end of it."""
        if self.opening:
            system, tools, user = self.opening
            return chat_format.encode_opening(system, tools, _joined(user, self.user))
        if self.responses:
            *others, last = self.responses
            last = replace(last, content=_joined(last.content, self.user))
            return chat_format.encode_tool_responses([*others, last])
        return chat_format.encode_user(self.user)


class TokenConversation:
    """A `Conversation` whose ids are one list, which only grows until `begin` starts another.

    With a seed, every turn has random numbers of its own, which depend on the seed and the number of the turn alone.
    """

    def __init__(
        self,
        engine: PolicyEngine,
        chat_format: ChatFormat,
        window: int,
        sampling: Sampling,
        conversation_id: str = "",
        constrain: bool = False,
        model_name: str | None = None,
        ids_per_token: int = 1,
    ) -> None:
        """`window`, `length`, the limit of `ask` and the usage of replies are in tokens, each worth `ids_per_token`
        ids: 1, unless the ids are smaller than what the field calls a token."""
        self.engine, self.chat_format, self.window, self.sampling = engine, chat_format, window, sampling
        self.conversation_id = conversation_id or uuid.uuid4().hex
        self.turn = 0
        self._model_name = model_name
        self._ids_per_token = ids_per_token
        self._constrain = constrain
        self._grammar: str | None = None
        self._ids = TokenPrefix()
        self._pending = _PendingMessage()
        self._encoded: list[int] | None = None
        self._warned = False

    @property
    def length(self) -> int:
        return self._tokens(len(self._ids) + len(self._unread()))

    def begin(self, system: str, tools: Sequence[ToolDefinition], user: str) -> None:
        self._ids = TokenPrefix()
        self._grammar = self.chat_format.grammar(tools) if self._constrain else None
        self._set_pending(_PendingMessage(opening=(system, tuple(tools), user)))

    def add_user_message(self, text: str) -> None:
        self._set_pending(replace(self._pending, user=_joined(self._pending.user, text)))

    def add_tool_responses(self, responses: Sequence[ToolResponse]) -> None:
        self._set_pending(replace(self._pending, responses=(*self._pending.responses, *responses)))

    async def ask(self, max_tokens: int) -> Reply:
        room = self.window - self.length
        if room < 1:
            raise ContextTooLong(f"the conversation has {self.length} tokens; the model's window holds {self.window}")
        prompt = self._next_prompt()
        # Without validation, like the turn's tokens below: each id was checked when it came in, and to check a whole
        # conversation again at every turn would cost more than all else that the harness does.
        generation = await self.engine.generate(
            GenerateRequest.model_construct(
                request_id=f"{self.conversation_id}/{self.turn}",
                prompt_ids=prompt[:],
                max_tokens=min(max_tokens, room) * self._ids_per_token,
                sampling=self._turn_sampling(),
                stop_ids=list(self.chat_format.stop_ids),
                conversation_id=self.conversation_id,
                turn=self.turn,
                grammar=self._grammar,
            )
        )
        reply = self._reply(prompt, generation)
        self.replay(reply)
        return reply

    def replay(self, reply: Reply) -> None:
        """The recorded ids count, with their prompt, even if the same text would be encoded in other ids today."""
        if reply.tokens is None:
            raise BadInput("a turn without token ids cannot be continued by a model that reads ids; start a new one")
        sampled = reply.tokens.completion_ids
        prompt = as_prefix(reply.tokens.prompt_ids)
        self._ids = prompt.extended([*sampled, *self.chat_format.close_turn(sampled)])
        self.turn += 1
        self._set_pending(_PendingMessage())

    def skip_turns(self, count: int) -> None:
        self.turn += count

    def fork(self) -> Self:
        other = copy(self)  # a prefix never changes, so both may hold the same one
        other.conversation_id = uuid.uuid4().hex
        return other

    def _set_pending(self, pending: _PendingMessage) -> None:
        self._pending, self._encoded = pending, None

    def _next_prompt(self) -> TokenPrefix:
        return self._ids.extended(self._unread())

    def _unread(self) -> list[int]:
        """The end of the next prompt, which the model has not read yet."""
        if self._encoded is None:
            self._encoded = self._pending.encode(self.chat_format)
        return self._encoded

    def _turn_sampling(self) -> Sampling:
        if self.sampling.seed is None:
            return self.sampling
        digest = hashlib.sha256(f"{self.sampling.seed}/{self.turn}".encode()).digest()
        return self.sampling.model_copy(update={"seed": int.from_bytes(digest[:4], "big") >> 1})

    def _tokens(self, ids: int) -> int:
        return -(-ids // self._ids_per_token)

    def _usage(self, counted: TokenUsage) -> TokenUsage:
        """An engine counts ids."""
        if self._ids_per_token == 1:
            return counted
        names = ("prompt_tokens", "completion_tokens", "cached_tokens")
        return counted.model_copy(update={name: self._tokens(getattr(counted, name)) for name in names})

    def _reply(self, prompt: TokenPrefix, generation: Generation) -> Reply:
        sampled = generation.completion_ids
        if generation.finish == "cancelled":
            raise EngineError("cut_stream", "the model's turn was cancelled", wasted_tokens=len(sampled))
        parsed = self.chat_format.parse(sampled)
        problem = parsed.problem
        if generation.finish == "length" and generation.constrained and not parsed.calls:
            problem = f"Your turn reached its limit of {len(sampled)} tokens before its call was whole. Write less."
        warnings = () if generation.constrained or not self._grammar or self._warned else (_NOT_CONSTRAINED,)
        self._warned = self._warned or bool(warnings)
        return Reply(
            text=parsed.text,
            calls=parsed.calls,
            problem=problem,
            finish=generation.finish,
            tokens=TurnTokens.model_construct(
                prompt_ids=prompt,
                completion_ids=sampled,
                logprobs=generation.logprobs,
                loss_mask=[1] * len(sampled),
                policy_versions=generation.policy_versions,
            ),
            usage=self._usage(generation.usage),
            constrained=generation.constrained,
            model_name=self._model_name,
            warnings=warnings,
        )


async def _do_nothing() -> None:
    return None


@dataclass(frozen=True)
class TokenModel:
    """A `Model` over a `PolicyEngine`, which takes ids: every turn of it can be trained on."""

    name: str
    engine: PolicyEngine
    chat_format: ChatFormat
    window: int
    local: bool = True
    trainable: bool = True
    ids_per_token: int = 1
    """How many ids count as one token; more than 1 where they are bytes."""
    on_close: Callable[[], Awaitable[None]] = field(default=_do_nothing)

    @property
    def window_ids(self) -> int:
        return self.window * self.ids_per_token

    def start_conversation(
        self, sampling: Sampling, conversation_id: str = "", constrain: bool = False
    ) -> TokenConversation:
        return TokenConversation(
            self.engine,
            self.chat_format,
            self.window,
            sampling,
            conversation_id,
            constrain,
            self.name,
            self.ids_per_token,
        )

    async def close(self) -> None:
        await self.on_close()


def _joined(text: str, more: str) -> str:
    return f"{text}\n\n{more}" if text and more else text or more
