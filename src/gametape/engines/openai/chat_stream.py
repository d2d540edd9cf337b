"""Collects a streamed chat completion: text, reasoning, tool calls, finish reason, usage."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, NoReturn

from gametape.engines.conversation import Call
from gametape.engines.errors import EngineError
from gametape.engines.openai.call_parts import StreamedCallParts
from gametape.engines.openai.reasoning_parts import ReasoningParts
from gametape.engines.server.client import ServerClient
from gametape.engines.server.errors import one_line
from gametape.engines.server.streamed_calls import StreamedCall, estimate_reply, parse_streamed_calls
from gametape.engines.server.wire_values import UNREADABLE, read_text

_FINISHES = {
    "stop": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "tool_use": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
}


@dataclass
class ChatCompletion:
    """What has been received so far."""

    text_pieces: list[str] = field(default_factory=list)
    refusal_pieces: list[str] = field(default_factory=list)
    reasoning: ReasoningParts = field(default_factory=ReasoningParts)
    calls: StreamedCallParts = field(default_factory=StreamedCallParts)
    finish: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    event_count: int = 0
    """Events with content: about as many as there were tokens."""

    @property
    def text(self) -> str:
        return "".join(self.text_pieces)


async def stream_completion(client: ServerClient, body: dict[str, Any], max_tokens: int) -> ChatCompletion:
    """One completion, streamed if the request says so. Raises `EngineError` unless the server says it is complete."""
    received = ChatCompletion()
    async with aclosing(_events(client, body, received)) as events:
        async for event in events:
            try:
                _add_event(received, event)
            except UNREADABLE as error:
                _raise_error(client, received, "garbled", "sends an event that is no part of a chat completion", error)
            if received.event_count > 4 * max_tokens + 64:
                _raise_error(client, received, "garbled", f"goes on long after the {max_tokens} requested tokens")
    if received.finish is None:
        _raise_error(client, received, "cut_stream", "ended its answer without finishing it")
    if received.refusal_pieces and not received.text_pieces and not received.calls.parts:
        said = one_line(client.hide_key("".join(received.refusal_pieces)))
        _raise_error(client, received, "refused", f"says that the model refuses: {said}")
    if received.finish == "content_filter":
        _raise_error(client, received, "refused", "stopped the answer: its content filter objected")
    if received.finish not in _FINISHES:
        finish = client.hide_key(received.finish)[:40]
        _raise_error(client, received, "refused", f"ended its answer for another reason: {finish!r}")
    return received


async def _events(
    client: ServerClient, body: dict[str, Any], received: ChatCompletion
) -> AsyncGenerator[dict[str, Any], None]:
    if body.get("stream"):
        async with aclosing(client.events("/chat/completions", body, lambda: received.event_count)) as events:
            async for event in events:
                yield event
        return
    answer = await client.post("/chat/completions", body)
    choices = answer.get("choices")
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        _raise_error(client, received, "garbled", "sends an answer that is no chat completion")
    yield answer | {"choices": [choice | {"delta": choice.get("message")} for choice in choices[:1]]}


def finish_reason(completion: ChatCompletion) -> Any:
    return _FINISHES[str(completion.finish)]


def parse_calls(completion: ChatCompletion, id_prefix: str) -> tuple[str, tuple[Call, ...], str | None]:
    """The text, the calls, and the problem with their form."""
    cut = finish_reason(completion) == "length"
    return parse_streamed_calls(completion.text, _streamed(completion), id_prefix, cut)


def estimate_completion(completion: ChatCompletion) -> int:
    """Our own estimate of the tokens in it."""
    return estimate_reply(completion.text, completion.reasoning.text, _streamed(completion))


def _streamed(completion: ChatCompletion) -> list[StreamedCall]:
    return [StreamedCall(part.id, part.name, part.arguments) for part in completion.calls.in_order()]


def _add_event(received: ChatCompletion, event: dict[str, Any]) -> None:
    if isinstance(event.get("usage"), dict):
        received.usage = event["usage"]
    for choice in event.get("choices") or []:
        delta = choice.get("delta") or {}
        text, refusal = read_text(delta.get("content")), read_text(delta.get("refusal"))
        calls = delta.get("tool_calls") or []
        if delta.get("function_call"):
            calls = [*calls, {"index": 0, "function": delta["function_call"]}]
        reasoned = received.reasoning.add(delta)
        received.text_pieces += [text] if text else []
        received.refusal_pieces += [refusal] if refusal else []
        received.event_count += bool(text or calls or reasoned or refusal)
        for part in calls:
            received.calls.add(part)
        if choice.get("finish_reason") is not None:
            received.finish = str(choice["finish_reason"])


def _raise_error(
    client: ServerClient, received: ChatCompletion, kind: Any, what: str, cause: Exception | None = None
) -> NoReturn:
    raise EngineError(kind, f"{client.server} {what}", wasted_tokens=received.event_count) from cause
