import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gametape.core.messages import Sampling
from gametape.engines.conversation import Call, Conversation, Reply, ToolResponse
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.errors import EngineError
from gametape.engines.openai import open_server_model
from gametape.engines.prices import FREE, Price
from tests.engines.openai.server import FaultServer, Raw, Said, Status
from tests.engines.servers.openai_server import OpenAIServer
from tests.engines.servers.scripted import ScriptedCall, Turn

TOOL = {"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}}


def talking(server: FaultServer, sampling: Sampling | None = None, more: str = "") -> Conversation:
    model = open_server_model(f"openai:tiny@{server.url}{more}", EgressPolicy(local_only=True))
    conversation = model.start_conversation(sampling or Sampling())
    conversation.begin("be brief", [TOOL], "do it")
    return conversation


def test_a_server_without_ids_says_that_it_cannot_be_trained_on() -> None:
    with FaultServer(["hello"]) as server:
        model = open_server_model(f"openai:tiny@{server.url}/v1", EgressPolicy())
        conversation = model.start_conversation(Sampling())
        conversation.begin("s", [], "u")
        reply = asyncio.run(conversation.ask(9))
    assert not model.trainable
    assert "404" in str(model.why_not_trainable)
    assert model.local
    assert model.window == 4096
    assert model.price == FREE
    assert (reply.text, reply.tokens, reply.finish, reply.model_name) == ("hello", None, "stop", model.name)
    assert model.name == f"openai:tiny@{server.url}"


def test_calls_and_their_answers_keep_their_names() -> None:
    calls = (("read", '{"path": "a.py"}'), ("read", '{"path": "ä\\n"}'))
    with FaultServer([Said("looking", calls), "done"]) as server:
        conversation = talking(server)
        first = asyncio.run(conversation.ask(99))
        conversation.add_tool_responses(
            [ToolResponse(call, f"content of {call.arguments['path']}") for call in first.calls]
        )
        asyncio.run(conversation.ask(99))
        messages = server.requests[1].body["messages"]
    assert [call.arguments for call in first.calls] == [{"path": "a.py"}, {"path": "ä\n"}]
    assert first.text == "looking"
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "tool", "tool"]
    assert [m["tool_call_id"] for m in messages[3:]] == [c["id"] for c in messages[2]["tool_calls"]]
    assert json.loads(messages[2]["tool_calls"][0]["function"]["arguments"]) == {"path": "a.py"}
    assert server.requests[0].body["tools"] == [{"type": "function", "function": TOOL}]


@pytest.mark.parametrize("raw", ['{"path": ', "[1]", '"x"', "{'a': 1}", "[" * 9000, '{"a": NaN}', '{"a": "\\ud800"}'])
def test_arguments_that_cannot_be_read_are_a_problem_and_stay_as_text(raw: str) -> None:
    with FaultServer([Said("hm", (("read", raw),)), "sorry"]) as server:
        conversation = talking(server)
        reply = asyncio.run(conversation.ask(9000))
        conversation.add_user_message(str(reply.problem))
        asyncio.run(conversation.ask(99))
        messages = server.requests[1].body["messages"]
    assert reply.calls == ()
    assert reply.problem is not None
    assert "'read'" in reply.problem
    assert reply.text == f"hm\nread({raw})"
    assert messages[2] == {"role": "assistant", "content": reply.text}


def test_a_call_without_an_answer_is_given_one() -> None:
    with FaultServer([Said("", (("read", "{}"), ("read", "{}"))), "ok"]) as server:
        conversation = talking(server)
        reply = asyncio.run(conversation.ask(99))
        conversation.add_tool_responses([ToolResponse(reply.calls[1], "second")])
        conversation.add_user_message("go on")
        asyncio.run(conversation.ask(99))
        messages = server.requests[1].body["messages"]
    assert [m["role"] for m in messages[3:]] == ["tool", "tool", "user"]
    assert {m["tool_call_id"] for m in messages[3:5]} == {call.id for call in reply.calls}


def test_a_recalled_conversation_asks_what_the_first_one_asked() -> None:
    with FaultServer([Said("a", (("read", "{}"),)), "b"]) as server:
        first = talking(server)
        reply = asyncio.run(first.ask(99))
        second = talking(server)
        second.replay(reply)
        for conversation in (first, second, first.fork()):
            conversation.add_tool_responses([ToolResponse(reply.calls[0], "text")])
            asyncio.run(conversation.ask(99))
        one, two, three = (seen.body for seen in server.requests[1:])
    assert one == two
    assert three["messages"][:4] == one["messages"][:4]


def test_sampling_is_sent_as_it_is() -> None:
    sampling = Sampling(temperature=0.3, top_p=0.9, top_k=40, seed=7)
    with FaultServer() as server:
        asyncio.run(talking(server, sampling).ask(33))
        asyncio.run(talking(server).ask(33))
        chosen, usual = (seen.body for seen in server.requests)
    said = {name: chosen[name] for name in ("temperature", "top_p", "top_k", "seed", "max_tokens", "stream")}
    assert said == {"temperature": 0.3, "top_p": 0.9, "top_k": 40, "seed": 7, "max_tokens": 33, "stream": True}
    assert not {"temperature", "top_p", "top_k", "seed", "tool_choice", "reasoning_effort"} & set(usual)


def test_a_model_that_knows_the_bound_by_its_new_name_only() -> None:
    no = Status(400, body='{"error": {"message": "max_tokens is not supported, use max_completion_tokens instead."}}')
    with FaultServer(["fine"], [no]) as server:
        assert asyncio.run(talking(server).ask(33)).text == "fine"
        assert server.requests[1].body["max_completion_tokens"] == 33
        assert "max_tokens" not in server.requests[1].body


def test_costs_come_from_the_name_or_the_file(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 600}}
    (tmp_path / "prices.toml").write_text("[tiny]\ninput = 2.0\noutput = 4.0\ncached = 0.0\n")
    with FaultServer([Said("x", usage=usage)]) as server:
        reply = asyncio.run(talking(server, more="?input=1.0&output=3.0").ask(9))
        filed = open_server_model(f"openai:tiny@{server.url}", EgressPolicy(), tmp_path)
    assert reply.usage.cost_usd == pytest.approx(0.00103)
    assert reply.usage.cached_tokens == 600
    assert filed.price == Price(2.0, 4.0, 0.0)


def test_an_unknown_price_is_not_a_price_of_nothing() -> None:
    with FaultServer(host="127.0.0.2") as server:
        far = EgressPolicy(is_local_address=lambda address: str(address) == "127.0.0.1")
        model = open_server_model(f"openai:tiny@{server.url}", far)
    assert not model.local
    assert not model.price.known


def test_a_server_at_a_socket_is_on_this_machine(tmp_path: Path) -> None:
    with FaultServer(["hello"], host=str(tmp_path / "s")) as server:
        conversation = talking(server)
        assert asyncio.run(conversation.ask(9)).text == "hello"


def test_length_is_what_the_server_counted_and_an_estimate_of_the_rest() -> None:
    with FaultServer([Said("x", usage={"prompt_tokens": 500, "completion_tokens": 20})]) as server:
        conversation = talking(server)
        assert conversation.length > 20
        asyncio.run(conversation.ask(9))
        assert conversation.length == 520
        conversation.add_user_message("é" * 300)
        assert 620 < conversation.length < 820


def test_half_a_character_does_not_get_through() -> None:
    with FaultServer([Said("a\ud800b", (("re\udfffad", '{"a": "x"}'),))]) as server:
        reply: Reply = asyncio.run(talking(server).ask(9))
    assert reply.text.encode() == b"a?b"
    assert reply.calls[0] == Call("re?ad", {"a": "x"}, reply.calls[0].id)


def strictly(server: OpenAIServer, sampling: Sampling | None = None, more: str = "", constrain: bool = False) -> Any:
    model = open_server_model(f"openai:gpt-x@{server.url}{more}", EgressPolicy(local_only=True))
    conversation = model.start_conversation(sampling or Sampling(), constrain=constrain)
    conversation.begin("system", [TOOL], "user")
    return conversation


CALLED = Turn("", "hm", (ScriptedCall("read", {}, "a"),))


@pytest.mark.parametrize("name", ["temperature", "top_p", "seed", "stream_options", "tool_choice", "reasoning_effort"])
def test_a_parameter_that_is_refused_is_left_out_from_then_on(name: str) -> None:
    refuses = {name: f"Unsupported parameter: '{name}' is not supported with this model."}
    sampling = Sampling(temperature=0.3, top_p=0.9, seed=7)
    with OpenAIServer([CALLED, CALLED], refuses=refuses) as server:
        conversation = strictly(server, sampling, "?reasoning=low", constrain=True)
        first = asyncio.run(conversation.ask(500))
        conversation.add_tool_responses([ToolResponse(first.calls[0], "x")])
        second = asyncio.run(conversation.ask(500))
        asked = [name in request.body for request in server.requests]
        other = strictly(server, sampling)
    assert asked == [True, False, False]
    assert first.warnings == (f"{name} is not sent: the server refuses it",)
    assert second.warnings == ()
    assert first.constrained == (name != "tool_choice")
    assert other.length > 0


def test_a_call_is_forced_where_that_was_asked_for() -> None:
    with OpenAIServer([CALLED, Turn("I would rather talk."), Turn("Still.")]) as server:
        conversation = strictly(server, constrain=True)
        forced = asyncio.run(conversation.ask(500))
        conversation.add_tool_responses([ToolResponse(forced.calls[0], "x")])
        ignored = [asyncio.run(conversation.ask(500)) for _ in range(2)]
        bodies = [request.body for request in server.requests]
    assert [body["tool_choice"] for body in bodies] == ["required"] * 3
    assert (forced.constrained, forced.warnings) == (True, ())
    assert ignored[0].warnings == ("the server was asked to force a tool call (tool_choice) and did not",)
    assert ignored[1].warnings == ()


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_kept_and_returned_under_the_name_it_came_with(field: str) -> None:
    with OpenAIServer([CALLED, Turn("fine", "so"), Turn("done")], reasoning_field=field) as server:
        conversation = strictly(server)
        first = asyncio.run(conversation.ask(500))
        conversation.add_tool_responses([ToolResponse(first.calls[0], "x")])
        assert asyncio.run(conversation.ask(500)).reasoning == "so"
        conversation.add_user_message("go on")
        assert asyncio.run(conversation.ask(500)).reasoning == ""
        messages = server.requests[-1].body["messages"]
    assert first.reasoning == "hm"
    assert [message.get(field) for message in messages if message["role"] == "assistant"] == ["hm", "so"]


def test_details_of_reasoning_go_back_as_they_came() -> None:
    details = [
        {"type": "reasoning.text", "text": "I ", "index": 0, "format": "anthropic-claude-v1"},
        {"type": "reasoning.text", "text": "think", "index": 0},
        {"type": "reasoning.text", "signature": "c2ln", "index": 0},
        {"type": "reasoning.encrypted", "data": "AAAA", "index": 1, "id": "call-1"},
    ]
    events = [
        {"choices": [{"delta": {"reasoning": part.get("text"), "reasoning_details": [part]}}]} for part in details
    ]
    events.append({"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]})
    raw = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    with FaultServer(["ok"], [Raw(raw)]) as server:
        conversation = talking(server)
        reply = asyncio.run(conversation.ask(99))
        conversation.add_user_message("go on")
        asyncio.run(conversation.ask(99))
        sent = server.requests[1].body["messages"][2]
    assert reply.reasoning == "I think"
    assert "reasoning" not in sent
    assert sent["reasoning_details"] == [
        {"type": "reasoning.text", "text": "I think", "index": 0, "format": "anthropic-claude-v1", "signature": "c2ln"},
        details[3],
    ]


def test_what_a_model_refuses_is_said_in_one_line() -> None:
    refusal = [
        {"choices": [{"delta": {"refusal": "I can't\nhelp"}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    ]
    filtered = [{"choices": [{"delta": {"content": "x"}, "finish_reason": "content_filter"}]}]
    for events, said in ((refusal, "refuses: I can't help"), (filtered, "content filter")):
        raw = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
        with FaultServer(["ok"], [Raw(raw)]) as server, pytest.raises(EngineError, match=said) as caught:
            asyncio.run(talking(server).ask(99))
        assert (caught.value.kind, "\n" in str(caught.value)) == ("refused", False)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "slow down"}, "rate_limited"),
        ({"code": 502, "message": "provider"}, "server_error"),
        ({"code": "server_error", "message": "Provider disconnected"}, "server_error"),
        ({"type": "BadRequestError", "code": 400, "message": "no"}, "refused"),
    ],
)
def test_an_error_inside_the_stream(error: dict[str, Any], kind: str) -> None:
    raw = b"data: " + json.dumps({"error": error, "choices": [{"finish_reason": "error"}]}).encode() + b"\n\n"
    with FaultServer(["ok"], [Raw(raw)]) as server, pytest.raises(EngineError) as caught:
        asyncio.run(talking(server).ask(99))
    assert caught.value.kind == kind


def test_a_call_that_the_limit_cut_off_says_so() -> None:
    with FaultServer([Said("", (("read", '{"path": "a'),), finish="length")]) as server:
        reply = asyncio.run(talking(server).ask(99))
    assert reply.finish == "length"
    assert "cut off" in str(reply.problem)


def test_no_more_is_asked_for_than_the_window_has_room_for() -> None:
    with FaultServer(["ok", "ok"]) as server:
        conversation = talking(server, more="?window=2000")
        asyncio.run(conversation.ask(16_000))
        conversation.add_user_message("x" * 9000)
        asyncio.run(conversation.ask(16_000))
        first, second = (request.body["max_tokens"] for request in server.requests)
    assert 1500 < first < 2000
    assert second == 256
