"""Collects an answer of `/api/chat`, which is streamed as JSON lines: text, thinking, tool calls, counts."""

import json
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from gametape.engines.conversation import Call
from gametape.engines.errors import EngineError, EngineErrorKind
from gametape.engines.server.client import ServerClient
from gametape.engines.server.streamed_calls import StreamedCall, parse_streamed_calls
from gametape.engines.server.wire_values import UNREADABLE, read_id, read_text

_MAX_CALLS = 64
_MAX_COUNT = 2**40


@dataclass
class OllamaAnswer:
    """What has been received so far."""

    text_pieces: list[str] = field(default_factory=list)
    thinking_pieces: list[str] = field(default_factory=list)
    calls: list[StreamedCall] = field(default_factory=list)
    done: bool = False
    finish: str = "stop"
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    event_count: int = 0
    """Lines with content: about as many as there were tokens."""

    @property
    def text(self) -> str:
        return "".join(self.text_pieces)

    @property
    def thinking(self) -> str:
        return "".join(self.thinking_pieces)


async def stream_chat(client: ServerClient, body: dict[str, Any], max_tokens: int) -> OllamaAnswer:
    """Stream one answer. Raises `EngineError` unless the server says that it is complete."""
    received = OllamaAnswer()
    async with aclosing(client.json_lines("/chat", body | {"stream": True}, lambda: received.event_count)) as events:
        async for event in events:
            try:
                _add_event(received, event)
            except UNREADABLE as error:
                _fail(client, received, "garbled", "sends a line that is no part of a chat", error)
            if received.event_count > 4 * max_tokens + 64:
                _fail(client, received, "garbled", f"goes on long after the {max_tokens} requested tokens")
            if received.done:
                break
    if not received.done:
        _fail(client, received, "cut_stream", "ended its answer without finishing it")
    if received.finish not in {"stop", "length"}:
        finish = client.hide_key(received.finish)[:40]
        _fail(client, received, "refused", f"ended its answer for another reason: {finish!r}")
    return received


def finish_of(answer: OllamaAnswer) -> Literal["stop", "length"]:
    return "length" if answer.finish == "length" else "stop"


def parse_calls(answer: OllamaAnswer, id_prefix: str) -> tuple[str, tuple[Call, ...], str | None]:
    """The text, the calls, and the problem with their form. Calls without an id are given one."""
    return parse_streamed_calls(answer.text, answer.calls, id_prefix, answer.finish == "length")


def _add_event(received: OllamaAnswer, event: dict[str, Any]) -> None:
    message = event.get("message") or {}
    text, thinking = read_text(message.get("content")), read_text(message.get("thinking"))
    calls = message.get("tool_calls") or []
    received.text_pieces.append(text)
    received.thinking_pieces.append(thinking)
    received.event_count += bool(text or thinking or calls)
    for call in calls:
        function = call["function"]
        arguments = function.get("arguments")  # an object in Ollama, text in its imitations
        raw = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
        received.calls.append(StreamedCall(read_id(call.get("id")), read_text(function["name"]), raw))
    if len(received.calls) > _MAX_CALLS:
        raise ValueError(len(received.calls))
    if event.get("done"):
        received.done = True
        received.finish = str(event.get("done_reason") or "stop")
        received.prompt_tokens = _count(event.get("prompt_eval_count"))
        received.completion_tokens = _count(event.get("eval_count"))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_COUNT else None


def _fail(
    client: ServerClient, received: OllamaAnswer, kind: EngineErrorKind, what: str, cause: Exception | None = None
) -> NoReturn:
    raise EngineError(kind, f"{client.server} {what}", wasted_tokens=received.event_count) from cause
