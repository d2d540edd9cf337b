"""A turn on record is the turn that was taken: reasoning and the server's ids come back from the record."""

import asyncio
import json

import pytest

from gametape.agent.recorded_steps import recorded_answers, recorded_reply
from gametape.agent.recorder import message_step, turn_step
from gametape.agent.replay import replay_conversation
from gametape.agent.tool_router import RoutedTurn
from gametape.core.messages import Sampling, TokenUsage
from gametape.core.step import Step
from gametape.engines.anthropic import open_anthropic_model
from gametape.engines.conversation import Call, Reply, ToolResponse
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.openai import open_server_model
from tests.engines.servers.anthropic_server import AnthropicServer
from tests.engines.servers.openai_server import OpenAIServer
from tests.engines.servers.scripted import ScriptedCall, Turn

STATE = {"protocol": "anthropic", "thinking": [{"before": 0, "block": {"type": "redacted_thinking", "data": "x"}}]}


def test_reasoning_survives_the_record() -> None:
    calls = (Call("read", {"path": "a"}, "toolu_1"), Call("read", {"path": "b"}, "toolu_2"))
    usage = TokenUsage(prompt_tokens=9, completion_tokens=5, reasoning_tokens=3, written_tokens=2)
    reply = Reply(
        "text", calls, reasoning="because", reasoning_state=STATE, warnings=("top_p is not sent",), usage=usage
    )
    routed = RoutedTurn(answers=[ToolResponse(calls[0], "one"), ToolResponse(calls[1], "two", True)])
    step = turn_step(3, reply, routed, [])
    document = json.loads(step.model_dump_json())
    assert document["reasoning_content"] == "because"
    assert document["extra"]["gametape"]["reasoning_state"] == STATE
    assert document["extra"]["gametape"]["warnings"] == ["top_p is not sent"]
    assert document["metrics"]["extra"]["reasoning_tokens"] == 3
    read = Step.model_validate(document)
    again = recorded_reply(read)
    assert (again.text, again.calls, again.reasoning, again.reasoning_state) == ("text", calls, "because", STATE)
    answers, _ = recorded_answers(read)
    assert [answer.call.id for answer in answers] == ["toolu_1", "toolu_2"]


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_a_record_goes_on_with_a_strict_server(protocol: str) -> None:
    """The servers refuse a conversation whose reasoning, signatures or ids are not what they sent."""
    said = Turn("looking", "I think", (ScriptedCall("read", {"path": "a"}, "id-1"), ScriptedCall("list", {}, "id-2")))
    script = [said, Turn("fine")]
    server = OpenAIServer(script) if protocol == "openai" else AnthropicServer(script, redacts=True)
    opened = open_server_model if protocol == "openai" else open_anthropic_model
    with server:
        model = opened(f"{protocol}:m@{server.url}?reasoning=low", EgressPolicy(local_only=True))
        conversation = model.start_conversation(Sampling())
        conversation.begin("system", [], "user")
        reply = asyncio.run(conversation.ask(9000))
        turn = turn_step(3, reply, RoutedTurn(answers=[ToolResponse(call, "x") for call in reply.calls]), [])
        steps = [message_step(1, "system", "system"), message_step(2, "user", "user"), turn]
        resumed = model.start_conversation(Sampling())
        replay_conversation(resumed, [Step.model_validate_json(step.model_dump_json()) for step in steps], [])
        assert asyncio.run(resumed.ask(9000)).text == "fine"
        assert len(server.requests) == 2


def test_a_turn_without_reasoning_has_none_on_record() -> None:
    step = turn_step(1, Reply("text", (Call("read", {}),)), RoutedTurn(), [])
    document = json.loads(step.model_dump_json())
    assert "reasoning_content" not in document
    assert "reasoning_state" not in document["extra"]["gametape"]
    assert "extra" not in document["tool_calls"][0]
    assert recorded_reply(step).calls[0].id == "call_1_0"
