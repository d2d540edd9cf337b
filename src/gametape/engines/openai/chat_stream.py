"""A streamed chat completion, put together: text, tool calls, how it ended, what it took."""

import json
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from gametape.engines.chat_formats.tool_calls import MalformedCall, parse_call
from gametape.engines.conversation import Call
from gametape.engines.errors import EngineError
from gametape.engines.openai.client import ServerClient

_FINISHES = {"stop": "stop", "tool_calls": "stop", "function_call": "stop", "length": "length"}
_MOST_CALLS = 64


@dataclass
class _WrittenCall:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class ChatCompletion:
    """What has come so far."""

    text: str = ""
    calls: dict[int, _WrittenCall] = field(default_factory=dict)
    finish: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    event_count: int = 0
    """Events that carried something: about as many as there were tokens."""


async def stream_completion(client: ServerClient, body: dict[str, Any], max_tokens: int) -> ChatCompletion:
    """Stream one completion. Raises `EngineError` unless the server says that the reply is whole."""
    so_far = ChatCompletion()
    request = body | {"stream": True, "stream_options": {"include_usage": True}}
    async with aclosing(client.events("/chat/completions", request, lambda: so_far.event_count)) as events:
        async for event in events:
            try:
                _take(so_far, event)
            except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
                _raise_error(client, so_far, "garbled", "sends an event that is no part of a chat completion", error)
            if so_far.event_count > 4 * max_tokens + 64:
                _raise_error(client, so_far, "garbled", f"goes on long after the {max_tokens} tokens it was asked for")
    if so_far.finish is None:
        _raise_error(client, so_far, "cut_stream", "ended its answer without finishing it")
    if so_far.finish not in _FINISHES:
        _raise_error(client, so_far, "refused", f"ended its answer for another reason: {so_far.finish[:40]!r}")
    return so_far


def finish_reason(completion: ChatCompletion) -> Any:
    return _FINISHES[str(completion.finish)]


def parse_calls(completion: ChatCompletion, id_prefix: str) -> tuple[str, tuple[Call, ...], str | None]:
    """The text, the calls, and what was wrong with their form; a call that cannot be read is kept as text."""
    text, calls = _sound(completion.text), []
    for position, (_, written) in enumerate(sorted(completion.calls.items())):
        name, raw = _sound(written.name), _sound(written.arguments)
        try:
            call = parse_call(json.dumps({"name": name, "arguments": json.loads(raw or "{}")}))
        except MalformedCall as error:
            return _as_text(text, name, raw), (), f"Your call of {name!r} cannot be read: {error}."
        except (ValueError, RecursionError) as error:
            why = str(error).splitlines()[0]
            return _as_text(text, name, raw), (), f"The arguments of your call of {name!r} are not valid JSON: {why}."
        calls.append(replace(call, id=_sound(written.id) or f"{id_prefix}{position}"))
    if len({call.id for call in calls}) < len(calls):
        calls = [replace(call, id=f"{id_prefix}{n}") for n, call in enumerate(calls)]
    return text, tuple(calls), None


def _as_text(text: str, name: str, raw: str) -> str:
    return f"{text}\n{name}({raw})".lstrip("\n")


def _sound(text: str) -> str:
    """Half a surrogate pair, which JSON can say but no file can hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _take(so_far: ChatCompletion, event: dict[str, Any]) -> None:
    if isinstance(event.get("usage"), dict):
        so_far.usage = event["usage"]
    for choice in event.get("choices") or []:
        delta = choice.get("delta") or {}
        text = delta.get("content") or ""
        calls = delta.get("tool_calls") or []
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        so_far.text += text
        so_far.event_count += bool(text or calls or thought)
        for part in calls:
            call = so_far.calls.setdefault(int(part.get("index") or 0), _WrittenCall())
            function = part.get("function") or {}
            call.id += part.get("id") or ""
            call.name += function.get("name") or ""
            call.arguments += function.get("arguments") or ""
        if len(so_far.calls) > _MOST_CALLS:
            raise ValueError(len(so_far.calls))
        if choice.get("finish_reason") is not None:
            so_far.finish = str(choice["finish_reason"])


def _raise_error(
    client: ServerClient, so_far: ChatCompletion, kind: Any, what: str, cause: Exception | None = None
) -> NoReturn:
    raise EngineError(kind, f"{client.server} {what}", wasted_tokens=so_far.event_count) from cause
