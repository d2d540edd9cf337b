"""A scripted server of Anthropic's messages, as strict about requests as the real one.

`refuses` are parameters that this model does not take, with the message of the error: real ones, word for word.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from .scripted import HTTPFault, Request, ScriptedServer, ScriptItem, Turn, pieces

NO_BUDGET = (
    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
    '"output_config.effort" to control thinking behavior.'
)
NO_TOP_P = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
_FIELDS = {
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "thinking",
    "output_config",
}
_THINKING = ("thinking", "redacted_thinking")
REDACTED = "EmwKAhgBEgy3va3pzix"


def error_body(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011"}


def invalid(message: str) -> HTTPFault:
    return HTTPFault(400, error_body("invalid_request_error", message))


RATE_LIMITED = HTTPFault(
    429, error_body("rate_limit_error", "This request would exceed your rate limit."), {"retry-after": "0"}
)
OVERLOADED = HTTPFault(529, error_body("overloaded_error", "Overloaded"))


class AnthropicServer(ScriptedServer):
    """`most_tokens` is the largest `max_tokens` that the model takes."""

    turn_path = "/v1/messages"

    def __init__(
        self,
        script: Sequence[ScriptItem],
        key: str | None = None,
        refuses: dict[str, str] | None = None,
        most_tokens: int = 64_000,
        redacts: bool = False,
    ) -> None:
        super().__init__(script, key)
        self.refuses = refuses or {}
        self.most_tokens = most_tokens
        self.redacts = redacts

    def refuse(self, request: Request) -> HTTPFault | None:
        body = request.body
        if self.key is not None and request.headers.get("x-api-key") != self.key:
            return HTTPFault(401, error_body("authentication_error", "invalid x-api-key"))
        return self._refuse_parameters(request) or self._refuse_thinking(body) or self._refuse_messages(body)

    def _refuse_parameters(self, request: Request) -> HTTPFault | None:
        body = request.body
        if request.headers.get("anthropic-version") != "2023-06-01":
            return invalid("anthropic-version: header is required")
        if unknown := set(body) - _FIELDS:
            return invalid(f"{sorted(unknown)[0]}: Extra inputs are not permitted")
        if body.get("max_tokens", 0) > self.most_tokens:
            return invalid(
                f"max_tokens: {body['max_tokens']} > {self.most_tokens}, which is the maximum allowed number of "
                "output tokens for claude-scripted-20251101"
            )
        if json.dumps(body).count('"cache_control"') > 4:
            return invalid("A maximum of 4 blocks with cache_control may be provided. Found 5.")
        for name, message in self.refuses.items():
            if name in body or _has_type(body.get("thinking"), name):
                return invalid(message)
        return None

    def _refuse_thinking(self, body: dict[str, Any]) -> HTTPFault | None:
        thinking = body.get("thinking")
        if thinking is None:
            return None
        if any(name in body for name in ("temperature", "top_k")):
            return invalid("`temperature` may only be set to 1 when thinking is enabled.")
        if body.get("tool_choice", {}).get("type") in {"any", "tool"}:
            return invalid("Thinking may not be enabled when tool_choice forces tool use.")
        if thinking["type"] == "enabled" and not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
            return invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
        return None

    def _refuse_messages(self, body: dict[str, Any]) -> HTTPFault | None:
        said, calls = iter(self.said), []
        for at, message in enumerate(body["messages"]):
            if message["role"] != ("user", "assistant")[at % 2]:
                return invalid(f"messages.{at}: roles must alternate between user and assistant")
            blocks = message["content"]
            if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
                return invalid(f"messages.{at}: text content blocks must be non-empty")
            if message["role"] == "user":
                results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
                first = [block["type"] for block in blocks[: len(results)]]
                if results != calls or set(first) - {"tool_result"}:
                    return invalid(f"messages.{at}: `tool_use` ids were found without `tool_result` blocks: {calls}")
                continue
            calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
            wanted = [block for block in _blocks(next(said, Turn()), self.redacts) if block["type"] in _THINKING]
            if "thinking" in body and [block for block in blocks if block["type"] in _THINKING] != wanted:
                return invalid(f"messages.{at}.content.0: `thinking` blocks cannot be modified")
            if any(_is_forged(block) for block in blocks):
                return invalid(f"messages.{at}.content.0: Invalid `signature` in `thinking` block")
        return None

    def stream(self, turn: Turn, request: Request) -> Iterator[bytes]:
        blocks = _blocks(turn, self.redacts)
        usage = {"input_tokens": 25, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
        usage |= turn.usage
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": request.body["model"]}
        yield _event("message_start", message=message | {"stop_reason": None, "usage": usage})
        yield _event("ping")
        for index, block in enumerate(blocks):
            yield from _block_events(index, block)
        stop = turn.stop or ("tool_use" if turn.calls else "end_turn")
        counted = {"output_tokens": turn.usage.get("output_tokens", 40)}
        yield _event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=counted)
        yield _event("message_stop")


def _blocks(turn: Turn, redacts: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if turn.reasoning:
        blocks.append({"type": "thinking", "thinking": turn.reasoning, "signature": _signature(turn.reasoning)})
        if redacts:
            blocks.append({"type": "redacted_thinking", "data": REDACTED})
    if turn.text:
        blocks.append({"type": "text", "text": turn.text})
    for call in turn.calls:
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments})
    return blocks


def _block_events(index: int, block: dict[str, Any]) -> Iterator[bytes]:
    match block["type"]:
        case "thinking":
            opening: dict[str, Any] = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case "text":
            opening = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        case "tool_use":
            opening = {**block, "input": {}}
            cut = ["", *pieces(json.dumps(block["input"]), 13)]
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in cut]
        case _:
            opening, deltas = block, []
    yield _event("content_block_start", index=index, content_block=opening)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _signature(text: str) -> str:
    return hashlib.sha256(f"signed {text}".encode()).hexdigest()


def _is_forged(block: dict[str, Any]) -> bool:
    return block["type"] == "thinking" and block.get("signature") != _signature(block["thinking"])


def _has_type(thinking: Any, name: str) -> bool:
    return isinstance(thinking, dict) and name == f"thinking.{thinking['type']}"


def _event(kind: str, **document: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **document})}\n\n".encode()
