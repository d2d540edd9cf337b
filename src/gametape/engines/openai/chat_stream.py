"""Collects a streamed chat completion: text, tool calls, finish reason, usage."""

import json
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from gametape.engines.chat_formats.tool_calls import MalformedCall, parse_call
from gametape.engines.conversation import Call
from gametape.engines.errors import EngineError
from gametape.engines.server.client import ServerClient

_FINISHES = {"stop": "stop", "tool_calls": "stop", "function_call": "stop", "length": "length"}
_MAX_CALLS = 64


@dataclass
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class ChatCompletion:
    """What has been received so far."""

    text: str = ""
    calls: dict[int, _PartialCall] = field(default_factory=dict)
    finish: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    event_count: int = 0
    """Events with content: about as many as there were tokens."""


async def stream_completion(client: ServerClient, body: dict[str, Any], max_tokens: int) -> ChatCompletion:
    """Stream one completion. Raises `EngineError` unless the server says that the reply is complete."""
    received = ChatCompletion()
    request = body | {"stream": True, "stream_options": {"include_usage": True}}
    async with aclosing(client.events("/chat/completions", request, lambda: received.event_count)) as events:
        async for event in events:
            try:
                _add_event(received, event)
            except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
                _raise_error(client, received, "garbled", "sends an event that is no part of a chat completion", error)
            if received.event_count > 4 * max_tokens + 64:
                _raise_error(client, received, "garbled", f"goes on long after the {max_tokens} requested tokens")
    if received.finish is None:
        _raise_error(client, received, "cut_stream", "ended its answer without finishing it")
    if received.finish not in _FINISHES:
        _raise_error(client, received, "refused", f"ended its answer for another reason: {received.finish[:40]!r}")
    return received


def finish_reason(completion: ChatCompletion) -> Any:
    return _FINISHES[str(completion.finish)]


def parse_calls(completion: ChatCompletion, id_prefix: str) -> tuple[str, tuple[Call, ...], str | None]:
    """The text, the calls, and the problem with their form; a call that cannot be parsed is kept as text."""
    text, calls = _valid_text(completion.text), []
    for position, (_, partial) in enumerate(sorted(completion.calls.items())):
        name, raw = _valid_text(partial.name), _valid_text(partial.arguments)
        try:
            call = parse_call(json.dumps({"name": name, "arguments": json.loads(raw or "{}")}))
        except MalformedCall as error:
            return _as_text(text, name, raw), (), f"Your call of {name!r} cannot be read: {error}."
        except (ValueError, RecursionError) as error:
            problem = f"The arguments of your call of {name!r} are not valid JSON: {str(error).splitlines()[0]}."
            return _as_text(text, name, raw), (), problem
        calls.append(replace(call, id=_valid_text(partial.id) or f"{id_prefix}{position}"))
    if len({call.id for call in calls}) < len(calls):
        calls = [replace(call, id=f"{id_prefix}{n}") for n, call in enumerate(calls)]
    return text, tuple(calls), None


def _as_text(text: str, name: str, raw: str) -> str:
    return f"{text}\n{name}({raw})".lstrip("\n")


def _valid_text(text: str) -> str:
    """Half a surrogate pair, which JSON allows but UTF-8 cannot hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _add_event(received: ChatCompletion, event: dict[str, Any]) -> None:
    if isinstance(event.get("usage"), dict):
        received.usage = event["usage"]
    for choice in event.get("choices") or []:
        delta = choice.get("delta") or {}
        text = delta.get("content") or ""
        calls = delta.get("tool_calls") or []
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        received.text += text
        received.event_count += bool(text or calls or reasoning)
        for part in calls:
            call = received.calls.setdefault(int(part.get("index") or 0), _PartialCall())
            function = part.get("function") or {}
            call.id += part.get("id") or ""
            call.name += function.get("name") or ""
            call.arguments += function.get("arguments") or ""
        if len(received.calls) > _MAX_CALLS:
            raise ValueError(len(received.calls))
        if choice.get("finish_reason") is not None:
            received.finish = str(choice["finish_reason"])


def _raise_error(
    client: ServerClient, received: ChatCompletion, kind: Any, what: str, cause: Exception | None = None
) -> NoReturn:
    raise EngineError(kind, f"{client.server} {what}", wasted_tokens=received.event_count) from cause
