"""A scripted server of OpenAI's chat completions, as strict about requests as the real one, with reasoning in the way
of vLLM and DeepSeek.

`refuses` are parameters that this model does not take, with the message of the error: real ones, word for word.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .scripted import HTTPFault, Request, ScriptedCall, ScriptedServer, ScriptItem, Turn, pieces

NO_TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1) value is supported."
)
NO_MAX_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)
_FIELDS = {
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "tools",
    "tool_choice",
    "reasoning_effort",
    "reasoning",
    "cache_control",
}


def invalid(message: str, parameter: str | None = None) -> HTTPFault:
    error = {"message": message, "type": "invalid_request_error", "param": parameter, "code": "unsupported_parameter"}
    return HTTPFault(400, {"error": error})


RATE_LIMITED = HTTPFault(
    429,
    {"error": {"message": "Rate limit reached for requests", "type": "requests", "code": "rate_limit_exceeded"}},
    {"retry-after": "1", "retry-after-ms": "20"},
)


class OpenAIServer(ScriptedServer):
    """`reasoning_field` is the name under which reasoning is sent, and must come back."""

    turn_path = "/v1/chat/completions"

    def __init__(
        self,
        script: Sequence[ScriptItem],
        key: str | None = None,
        refuses: dict[str, str] | None = None,
        reasoning_field: str = "reasoning_content",
        listing: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(script, key)
        self.refuses = refuses or {}
        self.reasoning_field = reasoning_field
        self.listing = listing or {"object": "list", "data": []}

    def answer(self, request: Request) -> HTTPFault:
        if request.method == "GET" and request.path.endswith("/models"):
            return HTTPFault(200, self.listing)
        return super().answer(request)

    def refuse(self, request: Request) -> HTTPFault | None:
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            return HTTPFault(401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}})
        body = request.body
        if unknown := set(body) - _FIELDS:
            return invalid(f"Unrecognized request argument supplied: {sorted(unknown)[0]}")
        for name, message in self.refuses.items():
            if name in body or any(name in message for message in body["messages"]):
                return invalid(message, name if name in body else None)
        if "max_tokens" not in body and "max_completion_tokens" not in body:
            return invalid("a bound is missing")
        return self._refuse_messages(body["messages"])

    def _refuse_messages(self, messages: list[dict[str, Any]]) -> HTTPFault | None:
        """Every call is answered at once, and reasoning comes back as it was said."""
        waiting: list[str] = []
        turns = iter(self.said)
        for at, message in enumerate(messages):
            if message["role"] == "tool":
                if message["tool_call_id"] not in waiting:
                    return invalid(f"messages[{at}]: no tool_calls before it have the id {message['tool_call_id']}")
                waiting.remove(message["tool_call_id"])
                continue
            if waiting:
                return invalid(f"An assistant message with 'tool_calls' must be followed by tool messages: {waiting}")
            if message["role"] == "assistant":
                waiting = [call["id"] for call in message.get("tool_calls", [])]
                turn = next(turns, Turn())
                sent = message.get(self.reasoning_field, "")
                if turn.reasoning and self.reasoning_field not in self.refuses and sent != turn.reasoning:
                    return invalid(f"Missing `{self.reasoning_field}` field in the assistant message at index {at}")
        return invalid(f"no answer to {waiting}") if waiting else None

    def stream(self, turn: Turn, request: Request) -> Iterator[bytes]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{self.reasoning_field: piece} for piece in pieces(turn.reasoning)]
        deltas += [{"content": piece} for piece in pieces(turn.text)]
        deltas += _call_deltas(turn.calls)
        for delta in deltas:
            yield _event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        finish = turn.stop or ("tool_calls" if turn.calls else "stop")
        yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        if request.body.get("stream_options", {}).get("include_usage"):
            usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            yield _event({"choices": [], "usage": turn.usage or usage})
        yield b"data: [DONE]\n\n"


def _call_deltas(calls: tuple[ScriptedCall, ...]) -> list[dict[str, Any]]:
    """First every call's name, then pieces of the arguments of all of them in turn, told apart by index alone."""
    deltas: list[dict[str, Any]] = []
    for index, call in enumerate(calls):
        start = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        deltas.append({"tool_calls": [start]})
    cut = [pieces(json.dumps(call.arguments), 11) for call in calls]
    for at in range(max((len(parts) for parts in cut), default=0)):
        for index, parts in enumerate(cut):
            if at < len(parts):
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": parts[at]}}]})
    return deltas


def _event(document: dict[str, Any]) -> bytes:
    whole = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted", **document}
    return b"data: " + json.dumps(whole).encode() + b"\n\n"
