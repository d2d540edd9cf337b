"""The blocks of messages: a reply as the server must be sent it back, tool results, and marks for its cache."""

from collections.abc import Sequence
from typing import Any

from gametape.engines.anthropic.message_stream import StreamedMessage
from gametape.engines.anthropic.thought_request import THINKING_BLOCKS
from gametape.engines.conversation import Call, Reply, ToolDefinition, ToolResponse

Block = dict[str, Any]
AnthropicMessage = dict[str, Any]
_CACHED = {"cache_control": {"type": "ephemeral"}}
_EMPTY = "(empty)"
_NO_ANSWER = "(no answer)"
_MARKED_MESSAGES = 2
"""Of the four marks that the protocol allows, one is on the tools and one on the system text."""


def text_block(text: str, otherwise: str = _EMPTY) -> Block:
    """The protocol has no blocks of blank text."""
    return {"type": "text", "text": text if text.strip() else otherwise}


def result_block(call_id: str, content: str, failed: bool) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return block | {"is_error": True} if failed else block


def result_blocks(responses: Sequence[ToolResponse]) -> list[Block]:
    return [result_block(response.call.id, response.content, response.failed) for response in responses]


def reasoning_state(message: StreamedMessage) -> dict[str, Any] | None:
    """The blocks of thinking as they came, each with the number of blocks of other kinds before it."""
    before, kept = 0, []
    for block in message.blocks_of(*THINKING_BLOCKS, "text", "tool_use"):
        if block["type"] in THINKING_BLOCKS:
            kept.append({"before": before, "block": block})
        elif block["type"] == "tool_use" or block.get("text"):
            before += 1
    texts = [len(block["text"]) for block in message.blocks_of("text") if block.get("text")]
    return {"protocol": "anthropic", "thinking": kept, "texts": texts} if kept else None


def reply_blocks(reply: Reply) -> list[Block]:
    """The blocks of a reply, with those of thinking unchanged and where they were."""
    state = reply.reasoning_state or {}
    thinking = state.get("thinking") if state.get("protocol") == "anthropic" else None
    texts, at = [], 0
    lengths = state.get("texts", []) if thinking and sum(state.get("texts", [])) == len(reply.text) else []
    for length in lengths or [len(reply.text)]:
        texts.append(reply.text[at : at + length])
        at += length
    others = [text_block(text) for text in texts if text.strip()] + [_call_block(call) for call in reply.calls]
    if not thinking:
        return others or [text_block("", _NO_ANSWER)]
    blocks: list[Block] = []
    for number in range(len(others) + 1):
        blocks += [dict(kept["block"]) for kept in thinking if min(int(kept["before"]), len(others)) == number]
        blocks += others[number : number + 1]
    return blocks if others else [*blocks, text_block("", _NO_ANSWER)]


def _call_block(call: Call) -> Block:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


def tool_blocks(tools: Sequence[ToolDefinition]) -> list[Block]:
    blocks = [
        {
            "name": tool["name"],
            "description": tool.get("description", ""),
            "input_schema": tool.get("parameters") or {"type": "object", "properties": {}},
        }
        for tool in tools
    ]
    return [*blocks[:-1], blocks[-1] | _CACHED] if blocks else []


def system_blocks(text: str) -> list[Block]:
    return [text_block(text) | _CACHED] if text.strip() else []


def with_marks(messages: Sequence[AnthropicMessage]) -> list[AnthropicMessage]:
    """The messages, with a mark at the end of the last ones of the user: the server keeps what it read up to there."""
    marked, left = list(messages), _MARKED_MESSAGES
    for at in range(len(marked) - 1, -1, -1):
        message = marked[at]
        if message["role"] == "user" and left:
            *first, last = message["content"]
            marked[at] = message | {"content": [*first, last | _CACHED]}
            left -= 1
    return marked
