"""Events in every wrong shape: a reply that can be recorded and sent back comes out, or an `EngineError`."""

import asyncio
import copy
import json
import random
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from gametape.engines.conversation import Model, Reply, ToolResponse
from gametape.engines.errors import ContextTooLong, EngineError
from tests.engines.server.replay_server import ReplayServer, begin, open_model

Events = list[dict[str, Any]]
DEEP = json.loads("[" * 400 + "]" * 400)
WRONG: list[Any] = [
    *(None, True, 5, -1, 1.5, 10**30, int("9" * 4000), "x", "\ud800", "", [], {}, [1], [None], {"a": 1}, [[]]),
    *(
        "9" * 5000,
        {"type": "text"},
        [["a", 1]],
        [{"index": DEEP}],
        DEEP,
        {"type": DEEP},
        "\x1b[31m",
        {"\ud800": "\udc00"},
    ),
]
OPENAI: Events = [
    {
        "choices": [
            {
                "index": 0,
                "delta": {
                    "content": "hi",
                    "refusal": "",
                    "reasoning": "r",
                    "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "t", "signature": "s"}],
                    "tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": '{"path": "x"}'}}],
                },
            }
        ]
    },
    {
        "choices": [
            {
                "delta": {
                    "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "t"}],
                    "function_call": {"name": "q", "arguments": "{}"},
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
    },
]
ANTHROPIC: Events = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 1, "cache_read_input_tokens": 2}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "hm"}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "t", "name": "read"}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "content_block_start", "index": 3, "content_block": {"type": "redacted_thinking", "data": "x"}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]
OLLAMA: Events = [
    {
        "message": {
            "content": "a",
            "thinking": "t",
            "tool_calls": [{"id": "q", "function": {"name": "read", "arguments": {"a": 1}}}],
        },
        "done": False,
    },
    {"message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 1, "eval_count": 2},
]
GOOD = {"openai": OPENAI, "anthropic": ANTHROPIC, "ollama": OLLAMA}


def encoded(protocol: str, events: Any) -> bytes:
    if protocol == "ollama":
        return b"".join(json.dumps(event).encode() + b"\n" for event in events)
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if place:
        yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        yield from places(item, (*place, name))


def changed(events: Events, place: tuple[Any, ...], value: Any) -> Events:
    document: Any = json.loads(json.dumps(events))
    holder = document
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = copy.copy(value)
    return list(document)


async def play(model: Model, server: ReplayServer, first: bytes, second: bytes) -> Reply | None:
    conversation, server.body = begin(model), first
    try:
        reply = await conversation.ask(64)
    except (EngineError, ContextTooLong):
        return None
    calls = [asdict(call) for call in reply.calls]
    json.dumps([reply.text, reply.reasoning, reply.reasoning_state, calls], ensure_ascii=False).encode()
    assert 0 <= reply.usage.cached_tokens <= reply.usage.prompt_tokens
    if reply.calls:
        conversation.add_tool_responses([ToolResponse(call, "ok") for call in reply.calls])
    else:
        conversation.add_user_message("Go on.")
    server.body = second
    await conversation.ask(64)
    return reply


@pytest.mark.parametrize("protocol", GOOD)
def test_only_an_engine_error_comes_of_a_wrong_event(protocol: str) -> None:
    good = encoded(protocol, GOOD[protocol])
    cases = [(place, value) for place in places(GOOD[protocol]) for value in WRONG]
    random.Random(7).shuffle(cases)

    async def play_all(model: Model, server: ReplayServer) -> list[Reply | None]:
        replies = [await play(model, server, good, good)]
        for place, value in cases[:150]:
            try:
                bad = encoded(protocol, changed(GOOD[protocol], place, value))
                replies.append(await play(model, server, bad, good))
            except Exception as error:
                error.add_note(f"with {value!r:.80} at {place}")
                raise
        await model.close()
        return replies

    with ReplayServer() as server:
        replies = asyncio.run(play_all(open_model(protocol, server), server))
    assert replies[0] is not None
    assert replies[0].calls
    assert None in replies


def asked(protocol: str, place: tuple[Any, ...], value: Any) -> Reply | None:
    good = encoded(protocol, GOOD[protocol])
    with ReplayServer() as server:
        bad = encoded(protocol, changed(GOOD[protocol], place, value))
        return asyncio.run(play(open_model(protocol, server), server, bad, good))


ID_PLACES = {
    "openai": (0, "choices", 0, "delta", "tool_calls", 0, "id"),
    "anthropic": (6, "content_block", "id"),
    "ollama": (0, "message", "tool_calls", 0, "id"),
}


@pytest.mark.parametrize("protocol", GOOD)
def test_an_id_that_is_a_number_is_taken_as_text(protocol: str) -> None:
    for value, wanted in ((5, "5"), (0, "0")):
        reply = asked(protocol, ID_PLACES[protocol], value)
        assert reply is not None
        assert reply.calls[0].id == wanted
    for wrong in (1.5, True, ["a"], {"a": 1}):
        assert asked(protocol, ID_PLACES[protocol], wrong) is None


@pytest.mark.parametrize(
    ("protocol", "place"),
    [
        ("openai", (0, "choices", 0, "delta", "reasoning_details", 0, "text")),
        ("openai", (0, "choices", 0, "delta", "reasoning_details", 0, "signature")),
        ("anthropic", (2, "delta", "thinking")),
        ("anthropic", (3, "delta", "signature")),
        ("anthropic", (8, "content_block", "data")),
        ("ollama", (0, "message", "thinking")),
    ],
)
def test_half_a_surrogate_pair_is_repaired(protocol: str, place: tuple[Any, ...]) -> None:
    reply = asked(protocol, place, "a\ud800b")
    assert reply is not None
    assert "a?b" in json.dumps([reply.reasoning, reply.reasoning_state])


@pytest.mark.parametrize(
    ("protocol", "place"),
    [
        ("openai", (0, "choices", 0, "delta", "reasoning_details", 0, "signature")),
        ("openai", (0, "choices", 0, "delta", "reasoning_details", 0, "index")),
        ("anthropic", (1, "content_block", "signature")),
        ("anthropic", (8, "content_block", "more")),
    ],
)
def test_what_is_nested_too_deeply_is_not_taken(protocol: str, place: tuple[Any, ...]) -> None:
    assert asked(protocol, place, DEEP) is None
