"""Collects a streamed message: its blocks of text, thinking and tool use, why it stopped, and usage."""

import json
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, NoReturn

from gametape.engines.errors import ContextTooLong, EngineError
from gametape.engines.server.client import ServerClient
from gametape.engines.server.errors import one_line
from gametape.engines.server.wire_values import UNREADABLE, read_id, read_text

_STOPS = {
    "end_turn": "stop",
    "tool_use": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
}
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "partial_json"),
}
"""By the type of a delta: what its content is called there, and in the block that it continues."""
_TEXTS = ("text", "thinking", "signature", "data", "name")
_MAX_BLOCKS = 1024


@dataclass
class StreamedMessage:
    """What has been received so far. A block of tool use has its input as text, under `partial_json`."""

    blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    pieces: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    """What the deltas added to the blocks, until they are joined at the end."""
    stop: str | None = None
    stop_detail: str = ""
    ended: bool = False
    usage: dict[str, Any] = field(default_factory=dict)
    event_count: int = 0
    """Events with content: about as many as there were tokens."""

    def blocks_of(self, *types: str) -> list[dict[str, Any]]:
        return [block for _, block in sorted(self.blocks.items()) if block["type"] in types]

    def join_pieces(self) -> None:
        for index, added in self.pieces.items():
            for name, pieces in added.items():
                self.blocks[index][name] = "".join([self.blocks[index].get(name) or "", *pieces])
        self.pieces = {}

    def text_of(self, type_: str) -> str:
        return "".join(block.get(type_) or "" for block in self.blocks_of(type_))


async def stream_message(client: ServerClient, body: dict[str, Any]) -> StreamedMessage:
    """Stream one message. Raises `EngineError` unless the server says that it is complete."""
    received, most = StreamedMessage(), int(body["max_tokens"])
    async with aclosing(client.events("/messages", body, lambda: received.event_count)) as events:
        async for event in events:
            try:
                _add_event(received, event)
            except UNREADABLE as error:
                _raise_error(client, received, "garbled", "sends an event that is no part of a message", error)
            if received.event_count > 4 * most + 64:
                _raise_error(client, received, "garbled", f"goes on long after the {most} requested tokens")
    received.join_pieces()
    if received.stop is None or not received.ended:
        _raise_error(client, received, "cut_stream", "ended its answer without finishing it")
    if received.stop == "model_context_window_exceeded":
        raise ContextTooLong(f"{client.server}: the conversation and the answer do not fit into the model's window")
    if received.stop == "refusal":
        said = f": {one_line(client.hide_key(received.stop_detail))}" if received.stop_detail else ""
        _raise_error(client, received, "refused", f"says that the model refuses to answer{said}")
    if received.stop not in _STOPS:
        stop = client.hide_key(received.stop)[:40]
        _raise_error(client, received, "refused", f"ended its answer for another reason: {stop!r}")
    return received


def finish_of(message: StreamedMessage) -> Any:
    return _STOPS[str(message.stop)]


def _add_event(received: StreamedMessage, event: dict[str, Any]) -> None:
    """Events and deltas of unknown types are passed over: the protocol may add some."""
    match event.get("type"):
        case "message_start":
            received.usage |= _counts(event["message"].get("usage"))
        case "content_block_start":
            block = dict(event["content_block"])
            if len(received.blocks) >= _MAX_BLOCKS or not isinstance(block["type"], str):
                raise ValueError(len(received.blocks))
            if block["type"] == "tool_use":
                block["partial_json"] = json.dumps(block["input"]) if block.get("input") else ""
                block["id"] = read_id(block.get("id"))
            block |= {name: read_text(block[name]) for name in _TEXTS if name in block}
            index = int(event["index"])
            received.blocks[index], received.pieces[index] = block, {}
            received.event_count += 1
        case "content_block_delta":
            delta, added = event["delta"], received.pieces[int(event["index"])]
            if delta["type"] in _DELTAS:
                given, kept = _DELTAS[delta["type"]]
                added.setdefault(kept, []).append(read_text(delta[given]))
            received.event_count += 1
        case "message_delta":
            received.usage |= _counts(event.get("usage"))
            delta = event["delta"]
            if delta.get("stop_reason") is not None:
                received.stop = str(delta["stop_reason"])
                received.stop_detail = _explanation(delta.get("stop_details"))
        case "message_stop":
            received.ended = True


def _counts(usage: Any) -> dict[str, Any]:
    """Later events repeat counts that have grown, and may leave out or empty the others."""
    return {name: value for name, value in usage.items() if value is not None} if isinstance(usage, dict) else {}


def _explanation(details: Any) -> str:
    said = details.get("explanation") if isinstance(details, dict) else None
    return said if isinstance(said, str) else ""


def _raise_error(
    client: ServerClient, received: StreamedMessage, kind: Any, what: str, cause: Exception | None = None
) -> NoReturn:
    raise EngineError(kind, f"{client.server} {what}", wasted_tokens=received.event_count) from cause
