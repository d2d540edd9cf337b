"""Conversations with a server in messages. The sampled ids are not known, so the turns cannot be trained on."""

import json
import time
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

from gametape.core.messages import Sampling, TokenUsage
from gametape.engines.conversation import CALL_NOT_RUN, Reply, ToolDefinition, ToolResponse
from gametape.engines.openai.chat_stream import estimate_completion, finish_reason, parse_calls, stream_completion
from gametape.engines.openai.reasoning_parts import reasoning_fields, without_reasoning
from gametape.engines.openai.usage import parse_usage
from gametape.engines.prices import Price
from gametape.engines.server.client import ServerClient
from gametape.engines.server.refusals import RefusedParameters
from gametape.engines.server.streamed_calls import estimate_tokens

ChatMessage = dict[str, Any]


_LEAST_ROOM = 256
"""The tokens that are asked for at least: the length of a conversation in messages is an estimate."""


@dataclass(frozen=True)
class ChatModel:
    """What the conversations with a model share. `model` is the server's name of it, `name` is that in its replies.

    `options` are sent with every request; `refused` is what the server has not taken so far.
    """

    client: ServerClient
    model: str
    name: str
    window: int
    price: Price
    options: Mapping[str, Any] = field(default_factory=dict)
    refused: RefusedParameters = field(default_factory=RefusedParameters)


class MessageConversation:
    """The messages only grow. A call without a response is given one, for servers insist on it."""

    def __init__(self, chat: ChatModel, sampling: Sampling, constrain: bool = False) -> None:
        self._chat = chat
        self._sampling = sampling
        self._constrain = constrain
        self._messages: tuple[ChatMessage, ...] = ()
        self._tools: tuple[ToolDefinition, ...] = ()
        self._open_calls: tuple[str, ...] = ()
        self._turn = 0
        self._counted = (0, 0)
        """The number of messages that the server has counted, and the tokens in them."""
        self._warned: frozenset[str] = frozenset()

    @property
    def length(self) -> int:
        """What the server counted, and an estimate for the messages since."""
        messages, tokens = self._counted
        tools = self._tools if messages == 0 else ()
        return tokens + sum(estimate_tokens(part) for part in (*self._messages[messages:], *tools))

    def begin(self, system: str, tools: Sequence[ToolDefinition], user: str) -> None:
        self._messages = ({"role": "system", "content": system}, {"role": "user", "content": user})
        self._tools = tuple(tools)
        self._open_calls = ()
        self._counted = (0, 0)

    def add_user_message(self, text: str) -> None:
        self._close_calls()
        self._messages += ({"role": "user", "content": text},)

    def add_tool_responses(self, responses: Sequence[ToolResponse]) -> None:
        self._messages += tuple(_tool_message(response.call.id, response.content) for response in responses)
        answered = {response.call.id for response in responses}
        self._open_calls = tuple(call for call in self._open_calls if call not in answered)
        self._close_calls()

    async def ask(self, max_tokens: int) -> Reply:
        began, chat = time.monotonic(), self._chat
        room = min(max_tokens, max(_LEAST_ROOM, chat.refused.window_within(chat.window) - self.length))
        body = self._request() | {"max_tokens": room}
        completion = await chat.refused.send(body, lambda shaped: stream_completion(chat.client, shaped, room))
        text, calls, problem = parse_calls(completion, f"call_{self._turn}_")
        written = estimate_completion(completion)
        counted = TokenUsage(prompt_tokens=self.length, completion_tokens=max(written, completion.event_count))
        read = (*map(without_reasoning, self._messages), *self._tools)
        estimated = TokenUsage(prompt_tokens=sum(estimate_tokens(part) for part in read), completion_tokens=written)
        usage = parse_usage(completion.usage, counted, chat.price, time.monotonic() - began, estimated)
        forced = "tool_choice" in chat.refused.shape(body)
        reply = Reply(
            text,
            calls,
            problem,
            finish_reason(completion),
            usage=usage,
            constrained=forced,
            model_name=chat.name,
            reasoning=completion.reasoning.text,
            reasoning_state=completion.reasoning.state(),
            warnings=self._new_warnings(forced and not calls and problem is None and completion.finish != "length"),
        )
        reply = chat.client.clean_reply(reply)
        self.replay(reply)
        self._counted = (len(self._messages), usage.prompt_tokens + usage.completion_tokens)
        return reply

    def replay(self, reply: Reply) -> None:
        message: ChatMessage = {"role": "assistant", "content": reply.text}
        message |= reasoning_fields(reply.reasoning, reply.reasoning_state)
        if reply.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                }
                for call in reply.calls
            ]
        self._messages += (message,)
        self._open_calls = tuple(call.id for call in reply.calls)
        self._turn += 1

    def skip_turns(self, count: int) -> None:
        self._turn += count

    def fork(self) -> Self:
        return copy(self)

    def _close_calls(self) -> None:
        self._messages += tuple(_tool_message(call, CALL_NOT_RUN) for call in self._open_calls)
        self._open_calls = ()

    def _new_warnings(self, ignored: bool) -> tuple[str, ...]:
        """What is done otherwise than asked, each said once in a conversation."""
        said = list(self._chat.refused.changes.values())
        if ignored:
            said.append("the server was asked to force a tool call (tool_choice) and did not")
        new = tuple(line for line in said if line not in self._warned)
        self._warned |= set(new)
        return new

    def _request(self) -> dict[str, Any]:
        """Sampling parameters that have their usual value are left out: some servers refuse them, or the pair."""
        sampling, usual = self._sampling, Sampling()
        body: dict[str, Any] = {
            "model": self._chat.model,
            "messages": list(self._messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            **self._chat.options,
        }
        for name in ("temperature", "top_p", "top_k", "seed"):
            if getattr(sampling, name) != getattr(usual, name):
                body[name] = getattr(sampling, name)
        if self._tools:
            body["tools"] = [{"type": "function", "function": tool} for tool in self._tools]
            if self._constrain:
                body["tool_choice"] = "required"
        return body


def _tool_message(call_id: str, content: str) -> ChatMessage:
    return {"role": "tool", "tool_call_id": call_id, "content": content}
