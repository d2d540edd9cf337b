"""A server that repeats the user's key, plainly or in disguise: no error and no reply has it."""

import asyncio
import json
import os
from typing import Any

import pytest

from gametape.core.errors import GametapeError
from gametape.engines.conversation import Reply
from gametape.engines.errors import EngineError
from tests.engines.server.replay_server import ReplayServer, begin, open_model

KEY = "sk-secret-of-the-user-0123456789"
ESCAPED = "".join(f"\\u{ord(character):04x}" for character in KEY)
DONE = b"data: [DONE]\n\n"
PROTOCOLS = ["openai", "anthropic", "ollama"]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMETAPE_API_KEY", KEY)


def ask(protocol: str, body: bytes, status: int = 200) -> Reply:
    with ReplayServer(body, status) as server:
        reply = asyncio.run(begin(open_model(protocol, server)).ask(500))
        assert any(os.environ["GAMETAPE_API_KEY"] in str(headers) for headers in server.headers)
    return reply


def events(*documents: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(document).encode() + b"\n\n" for document in documents)


def refusal(protocol: str, body: bytes, status: int = 200) -> str:
    with pytest.raises(GametapeError) as caught:
        ask(protocol, body, status)
    error = caught.value
    shown = f"{error} {error.detail} {error.parameter}" if isinstance(error, EngineError) else str(error)
    assert "[key]" in shown
    assert KEY[:12] not in shown
    return shown


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("written", [KEY, ESCAPED, ESCAPED.replace("\\", "\\\\")])
@pytest.mark.parametrize(
    "form",
    [
        '{"error": {"message": "bad key KEY", "param": "KEY"}}',
        '{"error": {"why": ["KEY"]}}',
        '{"error": "no KEY", "x": ',
        "bad KEY",
        '{"error": {"message": "maximum context length KEY"}}',
    ],
)
def test_the_body_of_an_error(protocol: str, written: str, form: str) -> None:
    refusal(protocol, form.replace("KEY", written).encode(), 400)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_error_in_a_stream(protocol: str) -> None:
    line = f'{{"error": {{"message": "bad key {ESCAPED}", "type": "invalid_request_error"}}}}\n\n'
    refusal(protocol, (line if protocol == "ollama" else f"data: {line}").encode())


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("openai", events({"choices": [{"delta": {"content": "x"}, "finish_reason": KEY + "x" * 60}]}) + DONE),
        ("openai", events({"choices": [{"delta": {"refusal": "x" * 280 + KEY}, "finish_reason": "stop"}]}) + DONE),
        (
            "anthropic",
            events({"type": "message_delta", "delta": {"stop_reason": KEY + "x" * 60}}, {"type": "message_stop"}),
        ),
        (
            "anthropic",
            events(
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": "refusal", "stop_details": {"explanation": "x" * 280 + KEY}},
                },
                {"type": "message_stop"},
            ),
        ),
        ("ollama", json.dumps({"done": True, "done_reason": KEY + "x" * 60}).encode() + b"\n"),
    ],
)
def test_the_reason_for_an_end(protocol: str, body: bytes) -> None:
    refusal(protocol, body)


def openai_turn() -> bytes:
    arguments = f'{{"command": "echo {ESCAPED}", "{KEY}": ["{KEY}"]}}'
    call = {"index": 0, "id": KEY, "function": {"name": "shell", "arguments": arguments[:30]}}
    details = [{"type": "reasoning.text", "index": 0, "text": part} for part in (KEY[:9], KEY[9:])]
    deltas: list[dict[str, Any]] = [
        {"content": "your key " + KEY[:5], "reasoning": KEY[:7], "reasoning_details": details[:1]},
        {"content": KEY[5:], "reasoning": KEY[7:], "reasoning_details": details[1:]},
        {"tool_calls": [call]},
        {"tool_calls": [{"index": 0, "function": {"arguments": arguments[30:]}}]},
    ]
    finish = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
    return events(*({"choices": [{"delta": delta}]} for delta in deltas), finish) + DONE


def anthropic_turn() -> bytes:
    documents: list[dict[str, Any]] = []
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {"type": "thinking", "thinking": ""},
            [{"type": "thinking_delta", "thinking": KEY[:5]}, {"type": "thinking_delta", "thinking": KEY[5:]}],
        ),
        ({"type": "redacted_thinking", "data": KEY}, []),
        ({"type": "text", "text": "is " + KEY[:5]}, [{"type": "text_delta", "text": KEY[5:]}]),
        (
            {"type": "tool_use", "id": KEY, "name": "shell", "input": {}},
            [{"type": "input_json_delta", "partial_json": f'{{"command": "{ESCAPED}"}}'}],
        ),
    ]
    for index, (block, deltas) in enumerate(blocks):
        documents.append({"type": "content_block_start", "index": index, "content_block": block})
        documents += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return events(*documents, {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"})


def ollama_turn() -> bytes:
    call = {"id": KEY, "function": {"name": "shell", "arguments": {"command": KEY}}}
    lines: list[dict[str, Any]] = [
        {"message": {"content": "it " + KEY[:5], "thinking": KEY[:6]}},
        {"message": {"content": KEY[5:], "thinking": KEY[6:], "tool_calls": [call]}},
        {"message": {}, "done": True, "done_reason": "stop"},
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@pytest.mark.parametrize(
    ("protocol", "body"), [("openai", openai_turn()), ("anthropic", anthropic_turn()), ("ollama", ollama_turn())]
)
def test_the_words_of_a_model(protocol: str, body: bytes) -> None:
    reply = ask(protocol, body)
    assert reply.text.endswith(" [key]")
    assert "[key]" in reply.reasoning
    assert "[key]" in str(reply.calls[0].arguments["command"])
    assert KEY not in repr(reply)


def test_a_short_key_is_a_word_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMETAPE_API_KEY", "to")
    with pytest.raises(EngineError) as caught:
        ask("openai", b'{"error": "the key to is no token"}', 400)
    assert "the key [key] is no token" in str(caught.value)
    done = {"choices": [{"delta": {"content": "to go"}, "finish_reason": "stop"}]}
    assert ask("openai", events(done) + DONE).text == "to go"
