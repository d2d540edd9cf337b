"""A turn on record is the turn that was taken: reasoning and the server's ids come back from the record."""

import json

from gametape.agent.recorder import recorded_answers, recorded_reply, turn_step
from gametape.agent.tool_router import RoutedTurn
from gametape.core.messages import TokenUsage
from gametape.core.step import Step
from gametape.engines.conversation import Call, Reply, ToolResponse

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


def test_a_turn_without_reasoning_has_none_on_record() -> None:
    step = turn_step(1, Reply("text", (Call("read", {}),)), RoutedTurn(), [])
    document = json.loads(step.model_dump_json())
    assert "reasoning_content" not in document
    assert "reasoning_state" not in document["extra"]["gametape"]
    assert "extra" not in document["tool_calls"][0]
    assert recorded_reply(step).calls[0].id == "call_1_0"
