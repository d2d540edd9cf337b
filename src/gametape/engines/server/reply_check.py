"""Takes out of a reply what must not be recorded: the user's key, halves of surrogate pairs, endless nesting."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gametape.engines.conversation import Reply
from gametape.engines.server.streamed_calls import valid_text

_MAX_DEPTH = 32


def clean_reply(reply: Reply, mask: Callable[[str], str]) -> Reply:
    """The reply with `mask` applied to all of its strings; raises `ValueError` where it is nested too deeply."""

    def clean(text: str) -> str:
        return mask(valid_text(text))

    return replace(
        reply,
        text=clean(reply.text),
        calls=tuple(
            replace(call, name=clean(call.name), id=clean(call.id), arguments=map_strings(call.arguments, clean))
            for call in reply.calls
        ),
        problem=None if reply.problem is None else clean(reply.problem),
        reasoning=clean(reply.reasoning),
        reasoning_state=map_strings(reply.reasoning_state, clean),
    )


def map_strings(value: Any, change: Callable[[str], str], depth: int = 0) -> Any:
    """A JSON value with its strings changed, also those that are names; raises `ValueError` at more than 32 levels."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict | list) and depth >= _MAX_DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {change(name): map_strings(item, change, depth + 1) for name, item in value.items()}
    return [map_strings(item, change, depth + 1) for item in value] if isinstance(value, list) else value
