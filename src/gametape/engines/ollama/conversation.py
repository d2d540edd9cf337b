"""Conversations with Ollama, in messages. The sampled ids are not known, so the turns cannot be trained on.

Ollama cuts a conversation silently where it is longer than `num_ctx`, which is small unless it is set: it is set in
every request, to what the conversation needs. A larger one makes Ollama load the model anew, so it grows by doubling.
"""

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

from gametape.core.messages import Sampling, TokenUsage
from gametape.engines.chat_formats.fenced import (
    parse_fenced,
    tool_instructions,
    tool_results_text,
    write_fenced_call,
)
from gametape.engines.conversation import CALL_NOT_RUN, Reply, ToolDefinition, ToolResponse
from gametape.engines.errors import ContextTooLong, EngineError
from gametape.engines.ollama.chat_stream import OllamaAnswer, finish_of, parse_calls, stream_chat
from gametape.engines.prices import Price
from gametape.engines.server.client import ServerClient
from gametape.engines.server.counts import believable_count
from gametape.engines.server.streamed_calls import estimate_reply, estimate_tokens

ChatMessage = dict[str, Any]
Entry = Reply | tuple[str, str] | tuple[ToolResponse, ...]
"""A turn of the model, a message (role and text), or results of calls."""
KEEP_ALIVE = "15m"
"""How long Ollama keeps the model loaded after a turn: tools may take their time."""
LEAST_CONTEXT = 8192
_LEAST_ROOM = 64


@dataclass
class OllamaAbilities:
    """What a model can do, as its server has said so far. `think` is what is sent; None leaves it to the model."""

    tools: bool = True
    think: bool | str | None = None
    changes: dict[str, str] = field(default_factory=dict)
    """What is done otherwise than asked, in one line each."""

    def write_calls_as_text(self) -> None:
        self.tools = False
        self.changes["tools"] = "the model takes no tools: they are described in the text, and calls are written there"

    def learn(self, error: EngineError) -> bool:
        """Whether the request can be repeated without what the server has just refused."""
        said = str(error)
        if error.kind != "refused":
            return False
        if "does not support tools" in said and self.tools:
            self.write_calls_as_text()
            return True
        if self.think is None or "think" not in said:
            return False
        if isinstance(self.think, str) and "does not support thinking" not in said:
            self.think, self.changes["think"] = (
                True,
                f"reasoning {self.think!r} is sent as yes: the model has no levels",
            )
            return True
        self.think, self.changes["think"] = None, "reasoning is not asked for: the model does not support it"
        return True


@dataclass(frozen=True)
class OllamaChat:
    """What the conversations with a model share. `model` is the server's name of it, `name` is that in its replies."""

    client: ServerClient
    model: str
    name: str
    window: int
    price: Price
    abilities: OllamaAbilities


class OllamaConversation:
    """The entries only grow; they become messages in the form that the model takes when it is asked."""

    def __init__(self, chat: OllamaChat, sampling: Sampling) -> None:
        self._chat = chat
        self._sampling = sampling
        self._entries: tuple[Entry, ...] = ()
        self._tools: tuple[ToolDefinition, ...] = ()
        self._turn = 0
        self._context = 0
        self._warned: frozenset[str] = frozenset()
        self._counted = (0, 0)
        """The number of entries that the server has counted, and the tokens in them."""

    @property
    def length(self) -> int:
        """What the server counted, and an estimate for the entries since."""
        entries, tokens = self._counted
        tools = self._tools if entries == 0 else ()
        since = (message for entry in self._entries[entries:] for message in self._messages_of(entry))
        return tokens + sum(estimate_tokens(part) for part in (*since, *tools))

    def begin(self, system: str, tools: Sequence[ToolDefinition], user: str) -> None:
        self._entries = (("system", system), ("user", user))
        self._tools = tuple(tools)
        self._counted = (0, 0)

    def add_user_message(self, text: str) -> None:
        self._close_calls()
        self._entries += (("user", text),)

    def add_tool_responses(self, responses: Sequence[ToolResponse]) -> None:
        last = self._entries[-1] if self._entries else None
        answered = {response.call.id for response in responses}
        missing = [call for call in last.calls if call.id not in answered] if isinstance(last, Reply) else []
        self._entries += ((*responses, *(ToolResponse(call, CALL_NOT_RUN, True) for call in missing)),)

    async def ask(self, max_tokens: int) -> Reply:
        began, before = time.monotonic(), self.length
        if before + _LEAST_ROOM > self._chat.window:
            raise ContextTooLong(f"{self._chat.name}: about {before} tokens, and the window has {self._chat.window}")
        room = min(max_tokens, self._chat.window - before)
        self._context = max(self._context, _context_for(before + room, self._chat.window))
        answer = await self._send(room)
        text, calls, problem = parse_calls(answer, f"call_{self._turn}_")
        if not self._chat.abilities.tools and self._tools and not calls and problem is None:
            text, calls, problem = parse_fenced(text)
        reply = Reply(
            text,
            calls,
            problem,
            finish_of(answer),
            usage=self._usage(answer, before, time.monotonic() - began),
            model_name=self._chat.name,
            reasoning=answer.thinking,
            warnings=self._new_warnings(),
        )
        reply = self._chat.client.clean_reply(reply)
        self.replay(reply)
        total = reply.usage.prompt_tokens + reply.usage.completion_tokens
        self._counted = (len(self._entries), max(total, self._counted[1]))
        return reply

    def replay(self, reply: Reply) -> None:
        self._entries += (reply,)
        self._turn += 1

    def skip_turns(self, count: int) -> None:
        self._turn += count

    def fork(self) -> Self:
        return copy(self)

    def _close_calls(self) -> None:
        last = self._entries[-1] if self._entries else None
        if isinstance(last, Reply) and last.calls:
            self.add_tool_responses(())

    async def _send(self, room: int) -> OllamaAnswer:
        while True:
            try:
                return await stream_chat(self._chat.client, self._request(room), room)
            except EngineError as error:
                if error.status == 404:
                    raise EngineError(
                        "refused", missing_model(self._chat.model, self._chat.client), status=404
                    ) from error
                if not self._chat.abilities.learn(error):
                    raise

    def _request(self, room: int) -> dict[str, Any]:
        abilities, sampling, usual = self._chat.abilities, self._sampling, Sampling()
        options = {"num_ctx": self._context, "num_predict": room}
        for name in ("temperature", "top_p", "top_k", "seed"):
            if getattr(sampling, name) != getattr(usual, name):
                options[name] = getattr(sampling, name)
        body: dict[str, Any] = {
            "model": self._chat.model,
            "messages": [message for entry in self._entries for message in self._messages_of(entry)],
            "options": options,
            "keep_alive": KEEP_ALIVE,
        }
        if self._tools and abilities.tools:
            body["tools"] = [{"type": "function", "function": tool} for tool in self._tools]
        return body if abilities.think is None else body | {"think": abilities.think}

    def _messages_of(self, entry: Entry) -> list[ChatMessage]:
        in_text = not self._chat.abilities.tools
        if isinstance(entry, Reply):
            return [_assistant_message(entry, in_text)]
        if entry and isinstance(entry[0], ToolResponse):
            responses = [response for response in entry if isinstance(response, ToolResponse)]
            if in_text:
                return [{"role": "user", "content": tool_results_text(responses)}]
            return [
                {"role": "tool", "tool_name": response.call.name, "content": response.content} for response in responses
            ]
        role, text = str(entry[0]), str(entry[1])
        return [
            {"role": role, "content": text + tool_instructions(self._tools) if role == "system" and in_text else text}
        ]

    def _usage(self, answer: OllamaAnswer, before: int, seconds: float) -> TokenUsage:
        """The server's own counts; ours where it sends none, as for a prompt that it had read before, or too few."""
        messages = (message for entry in self._entries for message in self._messages_of(entry))
        read = ({name: value for name, value in message.items() if name != "thinking"} for message in messages)
        prompt = before if answer.prompt_tokens is None else answer.prompt_tokens
        prompt = believable_count(prompt, sum(estimate_tokens(part) for part in (*read, *self._tools)))
        shown = estimate_reply(answer.text, answer.thinking, answer.calls)
        counted = max(shown, answer.event_count)
        completion = believable_count(counted if answer.completion_tokens is None else answer.completion_tokens, shown)
        cost = self._chat.price.cost(prompt, completion)
        return TokenUsage(prompt_tokens=prompt, completion_tokens=completion, cost_usd=cost, seconds=seconds)

    def _new_warnings(self) -> tuple[str, ...]:
        new = tuple(line for line in self._chat.abilities.changes.values() if line not in self._warned)
        self._warned |= set(new)
        return new


def missing_model(model: str, client: ServerClient) -> str:
    return f"{client.server} has no model {model}; type: ollama pull {model}"


def _assistant_message(reply: Reply, in_text: bool) -> ChatMessage:
    if in_text:
        fenced = (write_fenced_call(call.name, call.arguments) for call in reply.calls)
        return {"role": "assistant", "content": "\n".join(filter(None, [reply.text, *fenced]))}
    message: ChatMessage = {"role": "assistant", "content": reply.text}
    if reply.reasoning:
        message["thinking"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [{"function": {"name": call.name, "arguments": call.arguments}} for call in reply.calls]
    return message


def _context_for(tokens: int, window: int) -> int:
    """The least of 8192, 16384, ... that holds these tokens with a margin, at most the window."""
    context = LEAST_CONTEXT
    while context < tokens * 1.1:
        context *= 2
    return min(context, window)
