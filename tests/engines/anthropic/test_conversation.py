"""Anthropic's protocol against a strict server: what is sent, what is kept, what is done about a refusal."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from gametape.core.messages import Sampling
from gametape.engines.anthropic import open_anthropic_model
from gametape.engines.anthropic.conversation import AnthropicConversation
from gametape.engines.conversation import Reply, ToolResponse
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.errors import ContextTooLong, EngineError
from tests.engines.servers.anthropic_server import (
    NO_BUDGET,
    NO_TOP_P,
    OVERLOADED,
    REDACTED,
    AnthropicServer,
    invalid,
)
from tests.engines.servers.scripted import CutFault, RawFault, Request, ScriptedCall, Turn

TOOL = {"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}}
TWO = Turn("two", "hm", (ScriptedCall("read", {"path": "a"}, "t1"), ScriptedCall("read", {"path": "ä"}, "t2")))


_ASKED = Request("POST", "/v1/messages", {}, {"model": "m"})


def talking(
    server: AnthropicServer, sampling: Sampling | None = None, more: str = "", constrain: bool = False
) -> AnthropicConversation:
    model = open_anthropic_model(f"anthropic:claude-sonnet-4-5@{server.url}{more}", EgressPolicy(local_only=True))
    conversation = model.start_conversation(sampling or Sampling(), constrain=constrain)
    conversation.begin("Be good.", [TOOL], "Go.")
    return conversation


def ask(conversation: AnthropicConversation, max_tokens: int = 8000) -> Reply:
    return asyncio.run(conversation.ask(max_tokens))


def test_a_reply_has_text_thinking_and_parallel_calls() -> None:
    with AnthropicServer([TWO], redacts=True) as server:
        reply = ask(talking(server))
        body = server.requests[0].body
    assert (reply.text, reply.reasoning, reply.finish) == ("two", "hm", "stop")
    assert [(call.id, call.arguments["path"]) for call in reply.calls] == [("t1", "a"), ("t2", "ä")]
    assert body["system"] == [{"type": "text", "text": "Be good.", "cache_control": {"type": "ephemeral"}}]
    assert body["tools"][0]["input_schema"] == TOOL["parameters"]
    assert set(body) == {"model", "max_tokens", "messages", "stream", "system", "tools"}


def test_results_come_first_and_in_one_message_and_thinking_goes_back_unchanged() -> None:
    with AnthropicServer([TWO, Turn("fine")], redacts=True) as server:
        conversation = talking(server)
        reply = ask(conversation)
        conversation.add_tool_responses([ToolResponse(reply.calls[0], "x"), ToolResponse(reply.calls[1], "", True)])
        conversation.add_user_message("  ")
        ask(conversation)
        messages = server.requests[1].body["messages"]
    assert [block["type"] for block in messages[1]["content"]] == [
        "thinking",
        "redacted_thinking",
        "text",
        "tool_use",
        "tool_use",
    ]
    assert messages[1]["content"][1] == {"type": "redacted_thinking", "data": REDACTED}
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "tool_result", "text"]
    assert messages[2]["content"][1]["is_error"] is True


def test_a_call_without_an_answer_is_given_one() -> None:
    with AnthropicServer([TWO, Turn("fine")]) as server:
        conversation = talking(server)
        reply = ask(conversation)
        conversation.add_tool_responses([ToolResponse(reply.calls[0], "x")])
        conversation.add_user_message("more")
        assert ask(conversation).text == "fine"
        blocks = server.requests[1].body["messages"][2]["content"]
    assert [block.get("tool_use_id") for block in blocks] == ["t1", "t2", None]


def test_a_recalled_conversation_asks_what_the_first_one_asked() -> None:
    with AnthropicServer([TWO, Turn("b"), Turn("b")], redacts=True) as server:
        first = talking(server)
        reply = ask(first)
        second = talking(server)
        second.replay(reply)
        for conversation in (first, second):
            conversation.add_tool_responses([ToolResponse(call, "text") for call in reply.calls])
            ask(conversation)
            server.said.pop()
        one, two = (seen.body for seen in server.requests[1:])
    assert one == two


def test_at_most_four_places_are_marked_for_the_cache() -> None:
    with AnthropicServer([TWO] * 5) as server:
        conversation = talking(server)
        for _ in range(5):
            reply = ask(conversation)
            conversation.add_tool_responses([ToolResponse(call, "text") for call in reply.calls])
        marked = [_marked(request.body["messages"]) for request in server.requests]
    assert marked == [[0], [0, 2], [2, 4], [4, 6], [6, 8]]


def _marked(messages: list[dict[str, Any]]) -> list[int]:
    return [at for at, message in enumerate(messages) if "cache_control" in message["content"][-1]]


def test_usage_counts_what_the_cache_held() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 95, "output_tokens": 7}
    with AnthropicServer([Turn("x", usage=usage)]) as server:
        conversation = talking(server, more="?input=10&output=100&cached=1&written=12.5")
        reply = ask(conversation)
    assert (reply.usage.prompt_tokens, reply.usage.cached_tokens, reply.usage.written_tokens) == (1000, 900, 95)
    assert reply.usage.cost_usd == pytest.approx((5 * 10 + 900 * 1 + 95 * 12.5 + 7 * 100) / 1e6)
    assert conversation.length == 1007


@pytest.mark.parametrize(("reasoning", "budget"), [("low", 2048), ("medium", 6000), ("3000", 3000), ("99999", 6000)])
def test_an_older_model_thinks_within_a_budget(reasoning: str, budget: int) -> None:
    with AnthropicServer([Turn("x", "hm")]) as server:
        reply = ask(talking(server, Sampling(temperature=0.3, top_k=4), f"?reasoning={reasoning}"))
        body = server.requests[0].body
    assert body["thinking"] == {"type": "enabled", "budget_tokens": budget}
    assert not {"temperature", "top_k"} & set(body)
    assert reply.reasoning == "hm"


def test_a_newer_model_is_told_an_effort() -> None:
    with AnthropicServer([Turn("x", "hm"), Turn("y", "hm")], refuses={"thinking.enabled": NO_BUDGET}) as server:
        conversation = talking(server, more="?reasoning=20000")
        reply = ask(conversation)
        conversation.add_user_message("again")
        again = ask(conversation)
        bodies = [request.body for request in server.requests]
    assert [body["thinking"]["type"] for body in bodies] == ["enabled", "adaptive", "adaptive"]
    assert bodies[1]["output_config"] == {"effort": "high"}
    assert "by effort" in reply.warnings[0]
    assert again.warnings == ()


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("claude-3-7-sonnet-20250219", "enabled"),
        ("claude-opus-4-20250514", "enabled"),
        ("claude-sonnet-4-0", "enabled"),
        ("claude-haiku-4-5-20251001", "enabled"),
        ("claude-opus-4-6", "adaptive"),
        ("claude-sonnet-5", "adaptive"),
        ("another", "adaptive"),
    ],
)
def test_the_form_of_thinking_by_model(model: str, form: str) -> None:
    with AnthropicServer([Turn("x")]) as server:
        name = f"anthropic:{model}@{server.url}?reasoning=low"
        conversation = open_anthropic_model(name, EgressPolicy()).start_conversation(Sampling())
        conversation.begin("s", [], "u")
        ask(conversation)
        assert server.requests[0].body["thinking"]["type"] == form


def test_a_server_that_knows_neither_form_is_not_asked_to_think() -> None:
    refuses = {"thinking": "thinking: Extra inputs are not permitted"}
    with AnthropicServer([Turn("x")], refuses=refuses) as server:
        reply = ask(talking(server, Sampling(temperature=0.3), "?reasoning=low"))
        body = server.requests[-1].body
    assert not {"thinking", "output_config"} & set(body)
    assert body["temperature"] == 0.3
    assert reply.warnings == ("thinking is not sent: the server refuses it",)


def test_a_pair_that_is_refused_loses_top_p() -> None:
    with AnthropicServer([Turn("x"), Turn("y")], refuses={"top_p": NO_TOP_P}) as server:
        conversation = talking(server, Sampling(temperature=0.3, top_p=0.9))
        reply = ask(conversation)
        body = server.requests[1].body
    assert (body["temperature"], "top_p" in body) == (0.3, False)
    assert reply.warnings == ("top_p is not sent: the server refuses it together with temperature",)


def test_more_tokens_than_the_model_has_are_lowered_to_what_it_has() -> None:
    with AnthropicServer([Turn("x", "hm"), Turn("y")], most_tokens=4096) as server:
        conversation = talking(server, more="?reasoning=high")
        reply = ask(conversation, 16_384)
        conversation.add_user_message("again")
        ask(conversation, 16_384)
        bodies = [request.body for request in server.requests]
    assert [body["max_tokens"] for body in bodies] == [16_384, 4096, 4096]
    assert bodies[1]["thinking"]["budget_tokens"] == 3072
    assert "at most 4096" in reply.warnings[0]


def test_marks_for_the_cache_are_left_out_where_they_are_refused() -> None:
    fault = invalid("system.0.cache_control: Extra inputs are not permitted")
    with AnthropicServer([fault, Turn("x")]) as server:
        ask(talking(server))
        assert "cache_control" not in str(server.requests[1].body)


@pytest.mark.parametrize("thinks", [False, True])
def test_a_call_is_forced_unless_the_model_thinks(thinks: bool) -> None:
    with AnthropicServer([TWO, TWO]) as server:
        conversation = talking(server, more="?reasoning=low" if thinks else "", constrain=True)
        reply = ask(conversation)
        conversation.add_tool_responses([ToolResponse(call, "x") for call in reply.calls])
        again = ask(conversation)
        body = server.requests[0].body
    assert body.get("tool_choice") == (None if thinks else {"type": "any"})
    assert reply.constrained is not thinks
    assert reply.warnings == (
        ("no tool call is forced: the protocol does not allow it while the model thinks",) if thinks else ()
    )
    assert again.warnings == ()


def test_a_signature_that_is_refused_is_left_out() -> None:
    with AnthropicServer([TWO, Turn("fine")]) as server:
        reply = ask(talking(server))
        state: dict[str, Any] = reply.reasoning_state or {}
        forged = [{**kept, "block": {**kept["block"], "signature": "forged"}} for kept in state["thinking"]]
        conversation = talking(server)
        conversation.replay(replace(reply, reasoning_state={**state, "thinking": forged}))
        conversation.add_tool_responses([ToolResponse(call, "x") for call in reply.calls])
        again = ask(conversation)
    assert again.text == "fine"
    assert "signature" in again.warnings[0]


def test_reasoning_of_another_protocol_is_not_sent() -> None:
    with AnthropicServer([Turn("fine")]) as server:
        conversation = talking(server)
        conversation.replay(Reply("a", reasoning="b", reasoning_state={"protocol": "openai", "field": "reasoning"}))
        conversation.add_user_message("go")
        ask(conversation)
        assert server.requests[0].body["messages"][1]["content"] == [{"type": "text", "text": "a"}]


@pytest.mark.parametrize(
    ("stop", "error", "said"),
    [
        ("refusal", EngineError, "the model refuses to answer"),
        ("model_context_window_exceeded", ContextTooLong, "do not fit"),
        ("something_new", EngineError, "something_new"),
    ],
)
def test_why_a_turn_ended(stop: str, error: type[Exception], said: str) -> None:
    with AnthropicServer([Turn("x", stop=stop), Turn("again")]) as server:
        conversation = talking(server)
        with pytest.raises(error, match=said) as caught:
            ask(conversation)
        assert "\n" not in str(caught.value)
        assert ask(conversation).text == "again"


def test_a_turn_that_was_cut_off_says_so() -> None:
    with AnthropicServer([Turn("x", stop="max_tokens"), RawFault(TWO, 8, _CUT)]) as server:
        conversation = talking(server)
        assert ask(conversation).finish == "length"
        conversation.add_user_message("go on")
        reply = ask(conversation)
    assert reply.finish == "length"
    assert reply.problem is not None
    assert "cut off" in reply.problem


_CUT = (
    b'data: {"type":"content_block_start","index":9,"content_block":{"type":"tool_use","id":"a","name":"read"}}\n\n'
    b'data: {"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":"{\\"pa"}}\n\n'
    b'data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}\n\n'
    b'data: {"type":"message_stop"}\n\n'
)


def _error_event(kind: str) -> RawFault:
    event = json.dumps({"type": "error", "error": {"type": kind, "message": "no"}})
    return RawFault(TWO, 2, f"event: error\ndata: {event}\n\n".encode())


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (OVERLOADED, "server_error"),
        (CutFault(TWO, 5), "cut_stream"),
        (CutFault(TWO, 15), "cut_stream"),
        (RawFault(TWO, 2, b"data: {nonsense\n\n"), "garbled"),
        (RawFault(TWO, 2, b'data: {"type": "content_block_delta", "index": 7, "delta": {}}\n\n'), "garbled"),
        (RawFault(TWO, 2, b'data: {"type": "message_start"}\n\n'), "garbled"),
        (_error_event("overloaded_error"), "server_error"),
        (_error_event("rate_limit_error"), "rate_limited"),
        (_error_event("invalid_request_error"), "refused"),
    ],
)
def test_what_a_fault_is_called(fault: Any, kind: str) -> None:
    with AnthropicServer([fault, Turn("again")]) as server:
        conversation = talking(server)
        with pytest.raises(EngineError) as caught:
            ask(conversation)
        assert caught.value.kind == kind
        assert ask(conversation).text == "again"
        first, second = (request.body for request in server.requests)
    assert first == second


def test_events_of_a_kind_to_come_are_passed_over() -> None:
    raw = b'event: new\ndata: {"type": "new", "x": 1}\n\n' + b"".join([*AnthropicServer([]).stream(Turn("hi"), _ASKED)])
    with AnthropicServer([RawFault(TWO, 0, raw)]) as server:
        assert ask(talking(server)).text == "hi"


def test_the_key_is_wrong() -> None:
    with AnthropicServer([], key="other") as server, pytest.raises(EngineError, match="invalid x-api-key") as caught:
        ask(talking(server))
    assert caught.value.kind == "refused"
