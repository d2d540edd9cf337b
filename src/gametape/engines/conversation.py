"""How the agent speaks to a model, whatever kind of model it is.

A conversation only grows. Models that are given token ids keep exactly what they sampled (`TokenConversation`); servers
that only take messages are spoken to in messages, and their replies say that they cannot be trained on.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self

from gametape.core.messages import Sampling, TokenUsage
from gametape.core.tokens import TurnTokens

ToolDefinition = dict[str, Any]
"""`{"name": ..., "description": ..., "parameters": JSON schema}`."""


@dataclass(frozen=True)
class Call:
    """A tool call as the model wrote it."""

    name: str
    arguments: dict[str, Any]
    id: str = ""
    """The server's name for it, where it has one."""


@dataclass(frozen=True)
class Reply:
    """One turn of the model.

    `problem` says what was wrong with the form of a call, in words for the model; there are no calls then. `tokens` is
    None where the ids that were sampled are not known: such a turn cannot be trained on.
    """

    text: str
    calls: tuple[Call, ...] = ()
    problem: str | None = None
    finish: Literal["stop", "length"] = "stop"
    tokens: TurnTokens | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)
    constrained: bool = False
    model_name: str | None = None
    """Who answered, where a name stands for several models."""


@dataclass(frozen=True)
class ToolResponse:
    """What a tool answered to a call of the last reply."""

    call: Call
    content: str
    failed: bool = False


class Conversation(Protocol):
    """One line of talk with a model. Everything but `ask` is instant and offline."""

    @property
    def length(self) -> int:
        """How many tokens the next question would have; an estimate where the tokenizer is not known."""
        ...

    def begin(self, system: str, tools: Sequence[ToolDefinition], user: str) -> None:
        """Start afresh: whatever was said before is out of the window. `turn` counts on."""
        ...

    def add_user_message(self, text: str) -> None:
        """A message from the user's side."""
        ...

    def add_tool_responses(self, responses: Sequence[ToolResponse]) -> None:
        """The results of the calls of the last reply."""
        ...

    async def ask(self, max_tokens: int) -> Reply:
        """The model's next turn, which is then part of the conversation. Raises `EngineError`, with nothing changed,
        when there is none, and `ContextTooLong` when there is no room for one."""
        ...

    def replay(self, reply: Reply) -> None:
        """Put in a turn that was sampled earlier, as it was: this is how a recorded conversation is continued."""
        ...

    def fork(self) -> Self:
        """A second line of talk from here on."""
        ...


class Model(Protocol):
    """What a model's name stands for."""

    @property
    def name(self) -> str: ...

    @property
    def local(self) -> bool:
        """Whether nothing that is said to it leaves this machine."""
        ...

    @property
    def trainable(self) -> bool:
        """Whether its replies carry the ids and log-probabilities that were sampled."""
        ...

    @property
    def window(self) -> int:
        """How many tokens it can read and write in all."""
        ...

    def start_conversation(
        self, sampling: Sampling, conversation_id: str = "", constrain: bool = False
    ) -> Conversation:
        """A new conversation. `constrain` holds replies to the form of a tool call where the engine can do that."""
        ...

    async def close(self) -> None: ...


class ConversationWrapper:
    """To be derived from. A fork has a fork of the inner conversation, and shares the rest."""

    def __init__(self, inner: Conversation) -> None:
        self._inner = inner

    @property
    def length(self) -> int:
        return self._inner.length

    def begin(self, system: str, tools: Sequence[ToolDefinition], user: str) -> None:
        self._inner.begin(system, tools, user)

    def add_user_message(self, text: str) -> None:
        self._inner.add_user_message(text)

    def add_tool_responses(self, responses: Sequence[ToolResponse]) -> None:
        self._inner.add_tool_responses(responses)

    async def ask(self, max_tokens: int) -> Reply:
        return await self._inner.ask(max_tokens)

    def replay(self, reply: Reply) -> None:
        self._inner.replay(reply)

    def fork(self) -> Self:
        other = copy(self)
        other._inner = self._inner.fork()
        return other
