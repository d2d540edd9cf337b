"""The protocols `Model` and `Conversation`, through which the agent talks to every kind of model.

A conversation only grows. `TokenConversation` sends token ids and keeps exactly the ids that were sampled. Servers that
take messages only get messages (`MessageConversation`), and their replies say that they cannot be trained on.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self

from gametape.core.messages import Sampling, TokenUsage
from gametape.core.tokens import TurnTokens

ToolDefinition = dict[str, Any]
"""`{"name": ..., "description": ..., "parameters": JSON schema}`."""
CALL_NOT_RUN = "This call was not run."
"""The response to a call that got none: servers insist on one for each."""


@dataclass(frozen=True)
class Call:
    """A tool call as the model wrote it."""

    name: str
    arguments: dict[str, Any]
    id: str = ""
    """The id that the server gave to the call, if any."""


@dataclass(frozen=True)
class Reply:
    """One turn of the model.

    `problem` says what was wrong with the form of a call, in words for the model; there are no calls then. `tokens` is
    None where the ids that were sampled are not known: such a turn cannot be trained on.

    `reasoning` is what the model thought before it answered, as far as its server shows it. `reasoning_state` is what
    the server must be sent back with it in later turns, unchanged (signatures, encrypted parts); it begins with
    `protocol`, and another protocol ignores it. `warnings` are what was done otherwise than asked, one line each.
    """

    text: str
    calls: tuple[Call, ...] = ()
    problem: str | None = None
    finish: Literal["stop", "length"] = "stop"
    tokens: TurnTokens | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)
    constrained: bool = False
    model_name: str | None = None
    """The model that answered, where a name stands for several models."""
    reasoning: str = ""
    reasoning_state: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ToolResponse:
    """The result of one call of the last reply."""

    call: Call
    content: str
    failed: bool = False


class Conversation(Protocol):
    """The messages exchanged with a model. Everything but `ask` is instant and offline."""

    @property
    def length(self) -> int:
        """The number of tokens in the next prompt; an estimate where the tokenizer is not known."""
        ...

    def begin(self, system: str, tools: Sequence[ToolDefinition], user: str) -> None:
        """Start a new context: earlier messages are dropped. `turn` counts on."""
        ...

    def add_user_message(self, text: str) -> None:
        """Add a message of the user."""
        ...

    def add_tool_responses(self, responses: Sequence[ToolResponse]) -> None:
        """Add the results of the calls of the last reply."""
        ...

    async def ask(self, max_tokens: int) -> Reply:
        """Sample the model's next turn and add it to the conversation.

        Raises `EngineError` when no answer comes, and `ContextTooLong` when there is no room for one; the conversation
        is then unchanged.
        """
        ...

    def replay(self, reply: Reply) -> None:
        """Add a turn that was sampled earlier, as it was recorded, in order to continue a recorded conversation."""
        ...

    def skip_turns(self, count: int) -> None:
        """Count turns of earlier contexts, which are over: turns are numbered over the whole conversation."""
        ...

    def fork(self) -> Self:
        """A copy that continues independently from here."""
        ...


class Model(Protocol):
    """A model that conversations can be started with."""

    @property
    def name(self) -> str: ...

    @property
    def local(self) -> bool:
        """Whether everything sent to it stays on this machine."""
        ...

    @property
    def trainable(self) -> bool:
        """Whether its replies carry the ids and log-probabilities that were sampled."""
        ...

    @property
    def window(self) -> int:
        """The context length: prompt and completion together, in tokens."""
        ...

    def start_conversation(
        self, sampling: Sampling, conversation_id: str = "", constrain: bool = False
    ) -> Conversation:
        """A new conversation. `constrain` forces replies into the form of a tool call where the engine supports it."""
        ...

    async def close(self) -> None: ...


class ConversationWrapper:
    """A base class that delegates to an inner conversation. A fork has a fork of the inner one and shares the rest."""

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

    def skip_turns(self, count: int) -> None:
        self._inner.skip_turns(count)

    def fork(self) -> Self:
        other = copy(self)
        other._inner = self._inner.fork()
        return other
