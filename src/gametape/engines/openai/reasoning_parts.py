"""Puts streamed reasoning together, under the names that servers have for it.

vLLM says `reasoning` (formerly `reasoning_content`, as DeepSeek and others do), OpenRouter `reasoning` and
`reasoning_details`: a list of parts, some signed or encrypted, that it must be sent back as they came.
"""

from dataclasses import dataclass, field
from typing import Any

from gametape.engines.server.wire_values import read_text

_TEXT_FIELDS = ("reasoning", "reasoning_content")
_MAX_DETAILS = 4096
_JOINED = {"reasoning.text": "text", "reasoning.summary": "summary", "reasoning.encrypted": "data"}


@dataclass
class ReasoningParts:
    """Reasoning as far as it has been received; `field_name` is what the server calls its text."""

    pieces: list[str] = field(default_factory=list)
    field_name: str | None = None
    details: list[dict[str, Any]] = field(default_factory=list)
    detail_pieces: list[list[str]] = field(default_factory=list)
    """For each detail, the pieces of the text that is cut by the stream."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def add(self, delta: dict[str, Any]) -> bool:
        """Add what a delta has of it; whether it had any."""
        name = next((name for name in _TEXT_FIELDS if isinstance(delta.get(name), str) and delta[name]), None)
        if name is not None:
            self.field_name = self.field_name or name
            self.pieces.append(delta[name])
        details = delta.get("reasoning_details") or []
        if not isinstance(details, list) or not all(isinstance(part, dict) for part in details):
            raise TypeError("reasoning_details")
        for part in details:
            self._add_detail(dict(part))
        return name is not None or bool(details)

    def state(self) -> dict[str, Any] | None:
        """What must be sent back, for `Reply.reasoning_state`."""
        if self.details:
            parts = zip(self.details, self.detail_pieces, strict=True)
            details = [part | {_text_key(part): "".join(pieces)} if pieces else part for part, pieces in parts]
            return {"protocol": "openai", "field": "reasoning_details", "details": details}
        return {"protocol": "openai", "field": self.field_name} if self.field_name else None

    def _add_detail(self, part: dict[str, Any]) -> None:
        """Parts of the same type and index are one, cut by the stream."""
        last = self.details[-1] if self.details else {}
        key = _text_key(part)
        piece = read_text(part.get(key)) if key else ""
        joined = key and part.get("index") is not None
        if joined and all(last.get(name) == part.get(name) for name in ("type", "index")):
            self.detail_pieces[-1].append(piece)
            last.update({name: value for name, value in part.items() if value is not None and name != key})
            return
        if len(self.details) >= _MAX_DETAILS:
            raise ValueError("more parts of reasoning than a reply can have")
        self.details.append(part)
        self.detail_pieces.append([piece] if piece else [])


def _text_key(part: dict[str, Any]) -> str:
    """What the text of a detail is called; nothing where it has none."""
    return _JOINED.get(str(part.get("type")), "")


def reasoning_fields(text: str, state: dict[str, Any] | None) -> dict[str, Any]:
    """The fields of an assistant's message that return its reasoning to the server that it came from."""
    if state is None or state.get("protocol") != "openai":
        return {}
    if isinstance(state.get("details"), list):
        return {"reasoning_details": state["details"]}
    return {state["field"]: text} if state.get("field") in _TEXT_FIELDS and text else {}


def without_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    """A message without the reasoning in it, which servers may leave unread."""
    return {name: value for name, value in message.items() if name not in (*_TEXT_FIELDS, "reasoning_details")}
