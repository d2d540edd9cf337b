"""Conversations with a server in messages. The sampled ids are not known, so the turns cannot be trained on."""

import json
import time
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

from gametape.core.messages import Sampling, TokenUsage
from gametape.engines.conversation import Reply, ToolDefinition, ToolResponse
from gametape.engines.errors import EngineError
from gametape.engines.openai.chat_stream import finish_reason, parse_calls, stream_completion
from gametape.engines.openai.usage import parse_usage
from gametape.engines.prices import Price
from gametape.engines.server.client import ServerClient

ChatMessage = dict[str, Any]
_NOT_RUN = "This call was not run."


class MessageConversation:
    """The messages only grow. A call without a response is given one, for servers insist on it.

    `model` is the server's name of the model, `name` is the `model_name` of its replies.
    """

    def __init__(self, client: ServerClient, model: str, name: str, sampling: Sampling, price: Price) -> None:
        self._client = client
        self._model = model
        self._name = name
        self._sampling = sampling
        self._price = price
        self._messages: tuple[ChatMessage, ...] = ()
        self._tools: tuple[ToolDefinition, ...] = ()
        self._open_calls: tuple[str, ...] = ()
        self._turn = 0
        self._counted = (0, 0)
        """The number of messages that the server has counted, and the tokens in them."""

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
        began = time.monotonic()
        completion = await self._complete(max_tokens)
        text, calls, problem = parse_calls(completion, f"call_{self._turn}_")
        estimated = TokenUsage(prompt_tokens=self.length, completion_tokens=completion.event_count)
        usage = parse_usage(completion.usage, estimated, self._price, time.monotonic() - began)
        finish = finish_reason(completion)
        reply = Reply(text, calls, problem, finish, usage=usage, model_name=self._name)
        self.replay(reply)
        self._counted = (len(self._messages), usage.prompt_tokens + usage.completion_tokens)
        return reply

    def replay(self, reply: Reply) -> None:
        message: ChatMessage = {"role": "assistant", "content": reply.text}
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

    def fork(self) -> Self:
        return copy(self)

    def _close_calls(self) -> None:
        self._messages += tuple(_tool_message(call, _NOT_RUN) for call in self._open_calls)
        self._open_calls = ()

    async def _complete(self, max_tokens: int) -> Any:
        """Newer models take the bound as `max_completion_tokens` only, and say so."""
        body = self._request()
        try:
            return await stream_completion(self._client, body | {"max_tokens": max_tokens}, max_tokens)
        except EngineError as error:
            if error.kind != "refused" or "max_completion_tokens" not in str(error):
                raise
        return await stream_completion(self._client, body | {"max_completion_tokens": max_tokens}, max_tokens)

    def _request(self) -> dict[str, Any]:
        sampling = self._sampling
        body: dict[str, Any] = {
            "model": self._model,
            "messages": list(self._messages),
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        }
        if sampling.top_k:
            body["top_k"] = sampling.top_k
        if sampling.seed is not None:
            body["seed"] = sampling.seed
        if self._tools:
            body["tools"] = [{"type": "function", "function": tool} for tool in self._tools]
        return body


def estimate_tokens(part: ChatMessage) -> int:
    """An estimate of the tokens in a message or a tool's definition: rather too many than too few."""
    return 8 + len(json.dumps(part, ensure_ascii=False).encode("utf-8", "replace")) // 3


def _tool_message(call_id: str, content: str) -> ChatMessage:
    return {"role": "tool", "tool_call_id": call_id, "content": content}
