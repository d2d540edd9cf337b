"""Collects an answer of `/api/chat`, which is streamed as JSON lines: text, thinking, tool calls, counts."""

import json
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn

from gametape.engines.chat_formats.tool_calls import MalformedCall, parse_call
from gametape.engines.conversation import Call
from gametape.engines.errors import EngineError, EngineErrorKind
from gametape.engines.server.client import ServerClient

_MAX_CALLS = 64
_MAX_COUNT = 2**40


@dataclass
class OllamaAnswer:
    """What has been received so far."""

    text: str = ""
    thinking: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    done: bool = False
    finish: str = "stop"
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    event_count: int = 0
    """Lines with content: about as many as there were tokens."""


async def stream_chat(client: ServerClient, body: dict[str, Any], max_tokens: int) -> OllamaAnswer:
    """Stream one answer. Raises `EngineError` unless the server says that it is complete."""
    received = OllamaAnswer()
    async with aclosing(client.json_lines("/chat", body | {"stream": True}, lambda: received.event_count)) as events:
        async for event in events:
            try:
                _add_event(received, event)
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                _fail(client, received, "garbled", "sends a line that is no part of a chat", error)
            if received.event_count > 4 * max_tokens + 64:
                _fail(client, received, "garbled", f"goes on long after the {max_tokens} requested tokens")
            if received.done:
                break
    if not received.done:
        _fail(client, received, "cut_stream", "ended its answer without finishing it")
    if received.finish not in {"stop", "length"}:
        _fail(client, received, "refused", f"ended its answer for another reason: {received.finish[:40]!r}")
    return received


def finish_of(answer: OllamaAnswer) -> Literal["stop", "length"]:
    return "length" if answer.finish == "length" else "stop"


def parse_calls(answer: OllamaAnswer, id_prefix: str) -> tuple[str, tuple[Call, ...], str | None]:
    """The text, the calls, and the problem with their form; a call that cannot be parsed is kept as text.

    Ollama's calls have arguments that are objects, and often no id: they are given one.
    """
    text, calls = valid_text(answer.text), list[Call]()
    for position, made in enumerate(answer.calls):
        name, arguments = made.get("name"), made.get("arguments", {})
        try:
            if isinstance(arguments, str):
                arguments = json.loads(arguments or "{}")
            call = parse_call(json.dumps({"name": name, "arguments": {} if arguments is None else arguments}))
        except (MalformedCall, ValueError, RecursionError) as error:
            shown = valid_text(f"{name}({json.dumps(arguments)})")
            problem = f"Your call of {valid_text(str(name))!r} cannot be read: {str(error).splitlines()[0]}."
            return f"{text}\n{shown}".lstrip("\n"), (), problem
        calls.append(replace(call, id=made.get("id") or f"{id_prefix}{position}"))
    if len({call.id for call in calls}) < len(calls):
        calls = [replace(call, id=f"{id_prefix}{number}") for number, call in enumerate(calls)]
    return text, tuple(calls), None


def valid_text(text: str) -> str:
    """Half a surrogate pair, which JSON allows but UTF-8 cannot hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _add_event(received: OllamaAnswer, event: dict[str, Any]) -> None:
    message = event.get("message") or {}
    text, thinking = message.get("content") or "", message.get("thinking") or ""
    calls = message.get("tool_calls") or []
    received.text += text
    received.thinking += thinking
    received.event_count += bool(text or thinking or calls)
    for call in calls:
        function = call["function"]
        identity = call.get("id") or ""
        received.calls.append({"id": str(identity), "name": function["name"], "arguments": function.get("arguments")})
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
