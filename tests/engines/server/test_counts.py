"""A server that counts too little: a limit of tokens still means something."""

import asyncio
import json
from typing import Any

import pytest

from gametape.core.messages import TokenUsage
from gametape.engines.server.counts import believable_count
from tests.engines.server.replay_server import ReplayServer, begin, open_model

SAID = "some words of the model " * 50
ASKED = "some words of the user " * 200


def openai(prompt: int, completion: int, cached: int) -> list[dict[str, Any]]:
    usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": completion}
    usage |= {"prompt_tokens_details": {"cached_tokens": cached}}
    return [{"choices": [{"delta": {"content": SAID}, "finish_reason": "stop"}], "usage": usage}]


def anthropic(prompt: int, completion: int, cached: int) -> list[dict[str, Any]]:
    usage = {"input_tokens": prompt, "cache_read_input_tokens": cached}
    return [
        {"type": "message_start", "message": {"usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": completion}},
        {"type": "message_stop"},
    ]


def ollama(prompt: int, completion: int, _: int) -> list[dict[str, Any]]:
    counts = {"prompt_eval_count": prompt, "eval_count": completion}
    return [{"message": {"content": SAID}, "done": True, "done_reason": "stop", **counts}]


def usages(shape: Any, prompt: int, completion: int, cached: int = 0, turns: int = 1) -> list[TokenUsage]:
    events, protocol = shape(prompt, completion, cached), shape.__name__
    prefix, end = (b"", b"\n") if protocol == "ollama" else (b"data: ", b"\n\n")

    async def ask() -> list[TokenUsage]:
        conversation = begin(open_model(protocol, server))
        found = []
        for _ in range(turns):
            conversation.add_user_message(ASKED)
            found.append((await conversation.ask(4000)).usage)
        return found

    with ReplayServer(b"".join(prefix + json.dumps(event).encode() + end for event in events)) as server:
        return asyncio.run(ask())


@pytest.mark.parametrize("shape", [openai, anthropic, ollama])
def test_a_server_that_counts_nothing(shape: Any) -> None:
    first, second, third = usages(shape, 0, 0, turns=3)
    assert first.prompt_tokens >= len(ASKED) // 12
    assert first.completion_tokens >= len(SAID) // 12
    assert second.prompt_tokens >= first.prompt_tokens + (len(ASKED) + len(SAID)) // 12
    assert third.prompt_tokens >= second.prompt_tokens + (len(ASKED) + len(SAID)) // 12


@pytest.mark.parametrize("shape", [openai, anthropic, ollama])
def test_a_server_that_counts_well_is_believed(shape: Any) -> None:
    usage = usages(shape, 1001, 251)[0]
    assert (usage.prompt_tokens, usage.completion_tokens) == (1001, 251)


@pytest.mark.parametrize("shape", [openai, anthropic])
def test_no_more_is_cached_than_was_read(shape: Any) -> None:
    usage = usages(shape, 1, 1, cached=10**9)[0]
    assert 0 < usage.cached_tokens <= usage.prompt_tokens


def test_a_quarter_of_the_estimate_is_the_least() -> None:
    assert [believable_count(count, 400) for count in (0, 99, 100, 101)] == [100, 100, 100, 101]
