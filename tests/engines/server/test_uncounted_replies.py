"""A server that reports no usage: what a model wrote is estimated from its text, however few events brought it."""

import asyncio
import json
from typing import Any

import pytest

from gametape.core.messages import TokenUsage
from tests.engines.server.replay_server import ReplayServer, begin, open_model

THOUGHT = "I think about it. " * 100
SAID = "Here is the file. " * 50
ARGUMENTS = {"path": "a.py", "content": "x = 1\n" * 1000}
WRITTEN = len(THOUGHT) + len(SAID) + len(json.dumps(ARGUMENTS))


def openai() -> list[dict[str, Any]]:
    call = {"index": 0, "id": "c", "function": {"name": "write", "arguments": json.dumps(ARGUMENTS)}}
    delta = {"content": SAID, "reasoning_content": THOUGHT, "tool_calls": [call]}
    return [{"choices": [{"delta": delta, "finish_reason": "tool_calls"}]}]


def anthropic() -> list[dict[str, Any]]:
    blocks = [
        ({"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": THOUGHT}),
        ({"type": "text", "text": ""}, {"type": "text_delta", "text": SAID}),
        (
            {"type": "tool_use", "id": "c", "name": "write", "input": {}},
            {"type": "input_json_delta", "partial_json": json.dumps(ARGUMENTS)},
        ),
    ]
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {}}]
    for at, (block, delta) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        events.append({"type": "content_block_delta", "index": at, "delta": delta})
        events.append({"type": "content_block_stop", "index": at})
    return [*events, {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]


def ollama() -> list[dict[str, Any]]:
    call = {"function": {"name": "write", "arguments": ARGUMENTS}}
    message = {"content": SAID, "thinking": THOUGHT, "tool_calls": [call]}
    return [{"message": message, "done": True, "done_reason": "stop"}]


@pytest.mark.parametrize("shape", [openai, anthropic, ollama])
def test_a_reply_in_few_events_counts_by_its_length(shape: Any) -> None:
    prefix, end = (b"", b"\n") if shape is ollama else (b"data: ", b"\n\n")

    async def ask() -> TokenUsage:
        return (await begin(open_model(shape.__name__, server)).ask(8000)).usage

    with ReplayServer(b"".join(prefix + json.dumps(event).encode() + end for event in shape())) as server:
        usage = asyncio.run(ask())
    assert WRITTEN // 3 <= usage.completion_tokens <= WRITTEN // 2
