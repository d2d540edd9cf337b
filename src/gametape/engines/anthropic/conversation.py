"""Conversations in Anthropic's messages. The sampled ids are not known, so the turns cannot be trained on."""

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

from gametape.core.messages import Sampling, TokenUsage
from gametape.engines.anthropic.blocks import (
    AnthropicMessage,
    Block,
    reasoning_state,
    reply_blocks,
    result_block,
    result_blocks,
    system_blocks,
    text_block,
    tool_blocks,
    with_marks,
)
from gametape.engines.anthropic.message_stream import StreamedMessage, finish_of, stream_message
from gametape.engines.anthropic.thought_request import RefusedThinking, without_thinking
from gametape.engines.conversation import CALL_NOT_RUN, Reply, ToolDefinition, ToolResponse
from gametape.engines.prices import Price
from gametape.engines.server.client import ServerClient
from gametape.engines.server.counts import believable_count, count_at
from gametape.engines.server.streamed_calls import (
    StreamedCall,
    estimate_reply,
    estimate_tokens,
    parse_streamed_calls,
)

_LEAST_ROOM = 256


@dataclass(frozen=True)
class AnthropicChat:
    """What the conversations with a model share. `model` is the server's name of it, `name` is that in its replies."""

    client: ServerClient
    model: str
    name: str
    window: int
    price: Price
    refused: RefusedThinking


class AnthropicConversation:
    """The messages only grow, and turns of user and assistant alternate. Every call is answered in the next message,
    by the results of all calls first and the user's text after them."""

    def __init__(self, chat: AnthropicChat, sampling: Sampling, constrain: bool = False) -> None:
        self._chat = chat
        self._sampling = sampling
        self._constrain = constrain
        self._system = ""
        self._messages: tuple[AnthropicMessage, ...] = ()
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
        opening = (*self._tools, {"system": self._system}) if messages == 0 else ()
        return tokens + sum(estimate_tokens(part) for part in (*self._messages[messages:], *opening))

    def begin(self, system: str, tools: Sequence[ToolDefinition], user: str) -> None:
        self._system = system
        self._messages = ({"role": "user", "content": [text_block(user)]},)
        self._tools = tuple(tools)
        self._open_calls = ()
        self._counted = (0, 0)

    def add_user_message(self, text: str) -> None:
        self._close_calls()
        self._add_user_blocks([text_block(text)])

    def add_tool_responses(self, responses: Sequence[ToolResponse]) -> None:
        self._add_user_blocks(result_blocks(responses))
        answered = {response.call.id for response in responses}
        self._open_calls = tuple(call for call in self._open_calls if call not in answered)
        self._close_calls()

    async def ask(self, max_tokens: int) -> Reply:
        began, chat = time.monotonic(), self._chat
        window = chat.refused.window_within(chat.window)
        body = self._request(min(max_tokens, max(_LEAST_ROOM, window - self.length)))
        received = await chat.refused.send(body, lambda shaped: stream_message(chat.client, shaped))
        streamed = [
            StreamedCall(block["id"], block.get("name", ""), block["partial_json"])
            for block in received.blocks_of("tool_use")
        ]
        finish = finish_of(received)
        prefix = f"call_{self._turn}_"
        text, calls, problem = parse_streamed_calls(received.text_of("text"), streamed, prefix, finish == "length")
        usage = self._usage(received, streamed, time.monotonic() - began)
        forced = "tool_choice" in chat.refused.shape(body)
        reply = Reply(
            text,
            calls,
            problem,
            finish,
            usage=usage,
            constrained=forced,
            model_name=chat.name,
            reasoning=received.text_of("thinking"),
            reasoning_state=reasoning_state(received),
            warnings=self._new_warnings(forced),
        )
        reply = chat.client.clean_reply(reply)
        self.replay(reply)
        self._counted = (len(self._messages), usage.prompt_tokens + usage.completion_tokens)
        return reply

    def replay(self, reply: Reply) -> None:
        self._messages += ({"role": "assistant", "content": reply_blocks(reply)},)
        self._open_calls = tuple(call.id for call in reply.calls)
        self._turn += 1

    def skip_turns(self, count: int) -> None:
        self._turn += count

    def fork(self) -> Self:
        return copy(self)

    def _close_calls(self) -> None:
        if self._open_calls:
            self._add_user_blocks([result_block(call, CALL_NOT_RUN, True) for call in self._open_calls])
        self._open_calls = ()

    def _add_user_blocks(self, blocks: list[Block]) -> None:
        """To the user's last message if it is not answered yet; what is counted is counted again then."""
        *earlier, last = self._messages
        if last["role"] == "user":
            self._messages = (*earlier, last | {"content": [*last["content"], *blocks]})
        else:
            self._messages += ({"role": "user", "content": blocks},)

    def _request(self, max_tokens: int) -> dict[str, Any]:
        sampling, usual = self._sampling, Sampling()
        body: dict[str, Any] = {
            "model": self._chat.model,
            "max_tokens": max_tokens,
            "messages": with_marks(self._messages),
            "stream": True,
        }
        if self._system.strip():
            body["system"] = system_blocks(self._system)
        for name in ("temperature", "top_p", "top_k"):
            if getattr(sampling, name) != getattr(usual, name):
                body[name] = getattr(sampling, name)
        if self._tools:
            body["tools"] = tool_blocks(self._tools)
            if self._constrain:
                body["tool_choice"] = {"type": "any"}
        return body

    def _new_warnings(self, forced: bool) -> tuple[str, ...]:
        """What is done otherwise than asked, each said once in a conversation."""
        said = list(self._chat.refused.changes.values())
        if self._constrain and self._tools and not forced and "tool_choice" not in self._chat.refused.changes:
            said.append("no tool call is forced: the protocol does not allow it while the model thinks")
        new = tuple(line for line in said if line not in self._warned)
        self._warned |= set(new)
        return new

    def _usage(self, received: StreamedMessage, streamed: Sequence[StreamedCall], seconds: float) -> TokenUsage:
        """The protocol counts what was read from the cache and written to it apart from the rest of the prompt."""
        cached = count_at(received.usage, "cache_read_input_tokens")
        written = count_at(received.usage, "cache_creation_input_tokens")
        prompt = count_at(received.usage, "input_tokens") + cached + written or self.length
        read = (*map(without_thinking, self._messages), *self._tools, {"system": self._system})
        prompt = believable_count(prompt, sum(estimate_tokens(part) for part in read))
        shown = estimate_reply(received.text_of("text"), received.text_of("thinking"), streamed)
        completion = count_at(received.usage, "output_tokens") or max(shown, received.event_count)
        completion = believable_count(completion, shown)
        return TokenUsage(
            prompt_tokens=prompt,
            completion_tokens=completion,
            cached_tokens=cached,
            written_tokens=written,
            cost_usd=self._chat.price.cost(prompt, completion, cached, written),
            seconds=seconds,
        )
