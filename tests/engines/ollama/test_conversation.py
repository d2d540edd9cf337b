"""Conversations with Ollama, against a server with its own protocol."""

import asyncio
from typing import Any

import pytest

from gametape.core.errors import MissingDependency
from gametape.core.messages import Sampling
from gametape.engines.conversation import Call, Reply, ToolResponse
from gametape.engines.egress_policy import EgressDenied, EgressPolicy
from gametape.engines.errors import ContextTooLong, EngineError
from gametape.engines.ollama import OllamaModel, open_ollama_model
from gametape.engines.ollama.conversation import OllamaConversation

from .server import Cut, Lines, OllamaServer, Status, Turn

READ = {
    "name": "read",
    "description": "Read a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


def opened(server: OllamaServer, name: str = "tiny", options: str = "") -> OllamaModel:
    return open_ollama_model(f"ollama:{name}@{server.url}{options}", EgressPolicy())


def begun(model: OllamaModel, sampling: Sampling | None = None, tools: bool = True) -> OllamaConversation:
    conversation = model.start_conversation(sampling or Sampling())
    conversation.begin("be good", [READ] if tools else [], "look")
    return conversation


def ask(conversation: OllamaConversation, tokens: int = 100) -> Reply:
    return asyncio.run(conversation.ask(tokens))


def test_text_thinking_and_parallel_calls_become_a_reply_and_go_back() -> None:
    turns = [
        Turn("I look.", "first I should look", [("read", {"path": "a"}), ("read", {"path": "b"})]),
        Turn("done"),
    ]
    with OllamaServer(turns) as server:
        conversation = begun(opened(server))
        reply = ask(conversation)
        assert (reply.text, reply.reasoning, reply.finish) == ("I look.", "first I should look", "stop")
        assert reply.calls == (Call("read", {"path": "a"}, "call_0_0"), Call("read", {"path": "b"}, "call_0_1"))
        assert reply.usage.completion_tokens == 5
        assert reply.usage.prompt_tokens > 0
        conversation.add_tool_responses([ToolResponse(call, f"in {call.arguments['path']}") for call in reply.calls])
        assert ask(conversation).text == "done"
        messages = server.chats[1]["messages"]
    assert messages[2] == {
        "role": "assistant",
        "content": "I look.",
        "thinking": "first I should look",
        "tool_calls": [
            {"function": {"name": "read", "arguments": {"path": "a"}}},
            {"function": {"name": "read", "arguments": {"path": "b"}}},
        ],
    }
    assert messages[3:] == [
        {"role": "tool", "tool_name": "read", "content": "in a"},
        {"role": "tool", "tool_name": "read", "content": "in b"},
    ]


def test_ids_that_the_server_gives_are_kept() -> None:
    with OllamaServer([Turn("", calls=[("read", {"path": "a"})], ids=True)]) as server:
        assert ask(begun(opened(server))).calls[0].id == "call_read0"


def test_the_context_is_set_and_grows_with_the_conversation() -> None:
    with OllamaServer(window=40960) as server:
        model = opened(server)
        assert model.window == 40960
        conversation = begun(model)
        ask(conversation)
        conversation.add_user_message("x" * 30_000)
        ask(conversation)
        conversation.add_user_message("y" * 60_000)
        ask(conversation)
        options = [chat["options"] for chat in server.chats]
        assert [option["num_ctx"] for option in options] == [8192, 16384, 32768]
        assert options[0]["num_predict"] == 100
        assert all(chat["keep_alive"] == "15m" for chat in server.chats)
        conversation.add_user_message("z" * 60_000)
        with pytest.raises(ContextTooLong):
            ask(conversation)
        assert len(server.chats) == 3


def test_a_small_window_is_not_exceeded() -> None:
    with OllamaServer(window=2048) as server:
        ask(begun(opened(server)), 5000)
        options = server.chats[0]["options"]
    assert options["num_ctx"] == 2048
    assert options["num_predict"] < 2048
    with OllamaServer(window=2048) as server:
        assert opened(server, options="?window=1000").window == 1000


def test_only_unusual_sampling_parameters_are_sent() -> None:
    with OllamaServer() as server:
        ask(begun(opened(server)))
        ask(begun(opened(server), Sampling(temperature=0.0, top_p=0.9, top_k=5, seed=3)))
        usual, unusual = (chat["options"] for chat in server.chats)
    assert set(usual) == {"num_ctx", "num_predict"}
    assert (unusual["temperature"], unusual["top_p"], unusual["top_k"], unusual["seed"]) == (0.0, 0.9, 5, 3)


@pytest.mark.parametrize(("options", "expected"), [("", None), ("?reasoning=high", "high"), ("?reasoning=5000", True)])
def test_thinking_is_asked_for_where_reasoning_is(options: str, expected: object) -> None:
    with OllamaServer(levels=True) as server:
        ask(begun(opened(server, options=options)))
        assert server.chats[0].get("think") == expected


def test_a_model_without_levels_is_asked_to_think_at_all() -> None:
    with OllamaServer() as server:
        model = opened(server, options="?reasoning=low")
        reply = ask(begun(model))
        assert [chat["think"] for chat in server.chats] == ["low", True]
        assert "no levels" in reply.warnings[0]
        assert ask(begun(model)).text == "ok"
        assert len(server.chats) == 3


@pytest.mark.parametrize("listed", [True, False])
def test_a_model_that_cannot_think_works_without(listed: bool) -> None:
    capabilities = ("completion", "tools")
    with OllamaServer(capabilities=capabilities if listed else None, supports=capabilities) as server:
        reply = ask(begun(opened(server, options="?reasoning=high")))
        assert reply.text == "ok"
        assert any("reasoning is not asked for" in line for line in reply.warnings)
        assert "think" not in server.chats[-1]
        assert (len(server.chats) == 1) is listed


@pytest.mark.parametrize("listed", [True, False])
def test_a_model_without_tools_calls_them_in_its_text(listed: bool) -> None:
    fenced = 'I look.\n```tool\n{"name": "read", "arguments": {"path": "a"}}\n```'
    with OllamaServer(
        [Turn(fenced), Turn("done")], capabilities=("completion",) if listed else None, supports=("completion",)
    ) as server:
        conversation = begun(opened(server))
        reply = ask(conversation)
        assert (reply.text, [call.arguments for call in reply.calls]) == ("I look.", [{"path": "a"}])
        assert "takes no tools" in reply.warnings[0]
        conversation.add_tool_responses([ToolResponse(reply.calls[0], "in a")])
        second = ask(conversation)
        assert (second.text, second.warnings) == ("done", ())
        last = server.chats[-1]
    assert "tools" not in last
    assert "You have these tools:\n- read: Read a file." in last["messages"][0]["content"]
    assert [message["role"] for message in last["messages"]] == ["system", "user", "assistant", "user"]
    assert last["messages"][3]["content"] == "Result of read:\nin a"
    assert '"name": "read"' in last["messages"][2]["content"]


def test_a_model_that_is_not_there_says_how_to_get_it() -> None:
    with OllamaServer() as server, pytest.raises(MissingDependency, match="ollama pull other:7b") as caught:
        opened(server, "other:7b")
    assert "\n" not in str(caught.value)


def test_a_model_that_was_removed_meanwhile_says_so_too() -> None:
    with OllamaServer() as server:
        conversation = begun(opened(server))
        server.model = "renamed"
        with pytest.raises(EngineError, match="ollama pull tiny") as caught:
            ask(conversation)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("fault", "kind", "after"),
    [
        (Status(503, headers={"retry-after": "2"}), "server_error", 2.0),
        (Status(429, "too many requests", {"retry-after": "7"}), "rate_limited", 7.0),
        (Status(500, "llama runner process has terminated: exit status 2"), "server_error", None),
        (Status(400, "invalid options"), "refused", None),
        (Status(401, "unauthorized"), "refused", None),
        (Cut(1), "cut_stream", None),
        (Lines(b'{"message": {"content": "x"}, "done": false}\n'), "cut_stream", None),
        (Lines(b'{"error": "an error was encountered while running the model"}\n'), "server_error", None),
        (Lines(b"<html>"), "garbled", None),
        (Lines(b"[1]\n"), "garbled", None),
        (Lines(b'{"message": 3, "done": true}\n'), "garbled", None),
        (Lines(b'{"message": {"tool_calls": [{}]}, "done": true}\n'), "garbled", None),
        (Lines(b'{"message": {"content": "x"}, "done": true, "done_reason": "load"}\n'), "refused", None),
        (Lines(b'{"message": {"content": "x"}, "done": false}\n' * 600), "garbled", None),
    ],
)
def test_failures_leave_the_conversation_as_it_was(fault: Any, kind: str, after: float | None) -> None:
    with OllamaServer(faults=[fault]) as server:
        conversation = begun(opened(server))
        before = conversation.length
        with pytest.raises(EngineError) as caught:
            ask(conversation)
        assert (caught.value.kind, caught.value.retry_after) == (kind, after)
        assert "\n" not in str(caught.value)
        assert conversation.length == before
        assert ask(conversation).text == "ok"


@pytest.mark.parametrize("arguments", [["a"], 3, '{"path": ', {"x": "\ud800"}])
def test_a_call_with_odd_arguments_is_a_problem_for_the_model(arguments: object) -> None:
    with OllamaServer([Turn("text", calls=[("read", arguments)])]) as server:
        reply = ask(begun(opened(server)))
    assert reply.calls == ()
    assert reply.problem
    assert "read" in reply.problem


def test_arguments_that_are_text_or_missing_are_read() -> None:
    with OllamaServer([Turn(calls=[("read", '{"path": "a"}'), ("read", None)])]) as server:
        assert [call.arguments for call in ask(begun(opened(server))).calls] == [{"path": "a"}, {}]


def test_a_reply_that_was_cut_off_says_so_and_counts_may_be_missing() -> None:
    with OllamaServer([Turn("long", reason="length"), Turn("old", reason=None, counts=False)]) as server:
        conversation = begun(opened(server))
        assert ask(conversation).finish == "length"
        conversation.add_user_message("go on")
        reply = ask(conversation)
        assert (reply.finish, reply.usage.completion_tokens) == ("stop", 1)
        assert reply.usage.prompt_tokens > 0


def test_a_call_that_was_not_run_is_answered() -> None:
    with OllamaServer([Turn(calls=[("read", {"path": "a"})]), Turn("ok")]) as server:
        conversation = begun(opened(server))
        ask(conversation)
        conversation.add_user_message("never mind")
        ask(conversation)
        roles = [message["role"] for message in server.chats[1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "user"]


def test_a_recorded_conversation_goes_on_with_its_thinking() -> None:
    with OllamaServer() as server:
        conversation = begun(opened(server))
        conversation.replay(Reply("before", (Call("read", {"path": "a"}, "x"),), reasoning="hm"))
        conversation.add_tool_responses([ToolResponse(Call("read", {"path": "a"}, "x"), "in a")])
        ask(conversation.fork())
        messages = server.chats[0]["messages"]
    assert messages[2]["thinking"] == "hm"
    assert messages[3]["content"] == "in a"


def test_local_only_reaches_no_other_host() -> None:
    with pytest.raises(EgressDenied):
        open_ollama_model("ollama:tiny@http://192.0.2.1:11434", EgressPolicy(local_only=True))


def test_the_openai_endpoint_is_not_used() -> None:
    with OllamaServer() as server:
        ask(begun(opened(server)))
        assert server.paths == ["/api/show", "/api/chat"]
