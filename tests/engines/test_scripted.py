"""Policies that are written down."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gametape.core.errors import BadInput, MissingDependency
from gametape.core.messages import Sampling
from gametape.engines.conversation import ToolResponse
from gametape.engines.model_names import list_model_names, resolve_model
from gametape.engines.scripted import ScriptedCall, ScriptedTurn, read_script, scripted_model

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.text("abc xyz.\n", max_size=40), st.dictionaries(st.text(max_size=8), JSON, max_size=3))))
def test_what_is_written_arrives_through_tokens_and_parser(written: list[tuple[str, dict[str, object]]]) -> None:
    turns = [ScriptedTurn(text=text, tool_calls=[ScriptedCall(name="t", arguments=given)]) for text, given in written]

    async def main() -> None:
        conversation = scripted_model("s", turns).start_conversation(Sampling())
        conversation.begin("system", [], "user")
        for text, arguments in written:
            reply = await conversation.ask(100_000)
            assert reply.text == text.strip()
            assert [call.arguments for call in reply.calls] == [arguments]
            conversation.add_tool_responses([ToolResponse(reply.calls[0], "fine")])
        assert (await conversation.ask(1000)).calls[0].name == "finish"

    asyncio.run(main())


def test_the_nth_question_gets_the_nth_line_also_after_a_fork() -> None:
    async def main() -> None:
        conversation = scripted_model(
            "s", [ScriptedTurn(text=f"turn {number}") for number in range(3)]
        ).start_conversation(Sampling())
        conversation.begin("system", [], "user")
        assert (await conversation.ask(100)).text == "turn 0"
        conversation.add_user_message("go on")
        other = conversation.fork()
        assert (await conversation.ask(100)).text == (await other.ask(100)).text == "turn 1"
        conversation.begin("system", [], "afresh")
        assert (await conversation.ask(100)).text == "turn 2"

    asyncio.run(main())


def test_a_script_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"text": "one"}) + "\n\n" + json.dumps({"tool_calls": [{"name": "ls"}]}) + "\n")
    assert [turn.to_text() for turn in read_script(path)] == ["one", '```tool\n{"name": "ls", "arguments": {}}\n```']
    assert resolve_model(f"scripted:{path}", tmp_path).trainable is True


@pytest.mark.parametrize("name", ["scripted:", "scripted:nobody", "nothing", "", "openai:", "a b/c d"])
def test_names_that_stand_for_nothing_are_refused_in_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput) as caught:
        resolve_model(name, tmp_path)
    assert "\n" not in str(caught.value)


def test_the_embedded_model_says_how_it_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(MissingDependency, match="models fetch smollm2"):
        resolve_model("smollm2", tmp_path)
    assert {row["name"]: row["available"] for row in list_model_names(tmp_path)}["smollm2"] is False


def test_four_bytes_count_as_a_token_and_every_id_is_there() -> None:
    said = "a" * 399

    async def main() -> None:
        model = scripted_model("s", [ScriptedTurn(text=said)] * 2, window=1000)
        conversation = model.start_conversation(Sampling())
        conversation.begin("system", [], "user" * 100)
        reply = await conversation.ask(100)
        assert reply.tokens is not None
        assert (reply.finish, reply.text) == ("stop", said)
        assert reply.usage.completion_tokens == 100
        assert len(reply.tokens.completion_ids) == len(reply.tokens.logprobs) == len(reply.tokens.loss_mask) == 400
        assert reply.usage.prompt_tokens == -(-len(reply.tokens.prompt_ids) // 4)
        assert 202 <= conversation.length <= 210
        conversation.add_user_message("go on")
        cut = await conversation.ask(99)
        assert (cut.finish, cut.usage.completion_tokens, cut.text) == ("length", 99, "a" * 396)

    asyncio.run(main())
