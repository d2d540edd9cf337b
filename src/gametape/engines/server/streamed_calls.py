"""Parses the tool calls that a stream has brought; the problems are written for the model."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from gametape.engines.chat_formats.tool_calls import MalformedCall, parse_call
from gametape.engines.conversation import Call


class StreamedCall(NamedTuple):
    """A call as it came: its id, if it has one, its name, and its arguments as JSON text."""

    id: str
    name: str
    arguments: str


def parse_streamed_calls(
    text: str, streamed: Sequence[StreamedCall], id_prefix: str, cut: bool
) -> tuple[str, tuple[Call, ...], str | None]:
    """The text, the calls, and the problem with their form; a call that cannot be parsed is kept as text.

    `cut` says whether the reply ended at its limit of tokens.
    """
    text, calls = valid_text(text), []
    for position, part in enumerate(streamed):
        id_, name, raw = map(valid_text, part)
        try:
            call = parse_call(json.dumps({"name": name, "arguments": json.loads(raw or "{}")}))
        except (MalformedCall, ValueError, RecursionError) as error:
            return f"{text}\n{name}({raw})".lstrip("\n"), (), _problem(name, error, cut)
        calls.append(replace(call, id=id_ or f"{id_prefix}{position}"))
    if len({call.id for call in calls}) < len(calls):
        calls = [replace(call, id=f"{id_prefix}{n}") for n, call in enumerate(calls)]
    return text, tuple(calls), None


def valid_text(text: str) -> str:
    """Half a surrogate pair, which JSON allows but UTF-8 cannot hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def estimate_tokens(part: dict[str, Any]) -> int:
    """An estimate of the tokens in a message or a tool's definition: rather too many than too few."""
    return 8 + len(json.dumps(part, ensure_ascii=False).encode("utf-8", "replace")) // 3


def estimate_reply(text: str, reasoning: str, calls: Sequence[StreamedCall]) -> int:
    """An estimate of the tokens that a model wrote, as far as they are shown."""
    shown = [text, reasoning, *(part for call in calls for part in (call.name, call.arguments))]
    return sum(len(part.encode("utf-8", "replace")) for part in shown) // 3


def _problem(name: str, error: Exception, cut: bool) -> str:
    if cut:
        return f"Your call of {name!r} was cut off: the turn reached its limit of tokens. Write less in one turn."
    if isinstance(error, MalformedCall):
        return f"Your call of {name!r} cannot be read: {error}."
    return f"The arguments of your call of {name!r} are not valid JSON: {str(error).splitlines()[0]}."
