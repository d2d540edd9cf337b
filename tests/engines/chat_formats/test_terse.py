"""The terse chat format: what is written is read back, and whatever else a policy says is answered in few words."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gametape.core.errors import BadInput
from gametape.engines.chat_formats.loader import load_chat_format
from gametape.engines.chat_formats.terse import TerseChatFormat
from gametape.engines.conversation import Call, ToolResponse
from gametape.engines.tokenizers.trained import TrainedTokenizer
from gametape.engines.tokenizers.words import save_word_tokenizer, word_tokenizer_json

WORDS = ["put", "blue", "into", "f3", ",", "write", "delete", "error", ":", "no", "end", "ok", "next", "force"]
SIGNATURES = {"write": ["item", "value", "mode"], "delete": ["item", "value"], "look": []}
CHAT_FORMAT = TerseChatFormat(TrainedTokenizer(word_tokenizer_json([*WORDS, "look"])), SIGNATURES)
USER, TOOL, ACT, END, PAD = (
    CHAT_FORMAT.tokenizer.special_tokens[f"<{name}>"] for name in ("user", "tool", "act", "end", "pad")
)


def shown(ids):
    return CHAT_FORMAT.tokenizer.decode_with_special(ids)


@pytest.mark.parametrize(
    "call",
    [
        Call("write", {"item": "f3", "value": "blue"}),
        Call("write", {"item": "f3", "value": "blue", "mode": "force"}),
        Call("delete", {"item": "f3"}),
        Call("look", {}),
    ],
)
def test_a_call_is_read_back(call):
    ids = CHAT_FORMAT.encode_call(call)
    assert CHAT_FORMAT.parse(ids) == ("", (call,), None)
    assert len(ids) == len(call.arguments) + 2
    assert CHAT_FORMAT.close_turn(ids) == []


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        ([], "no end"),
        ([END], "no such tool"),
        (CHAT_FORMAT.encode_call(Call("delete", {"item": "f3", "value": "blue"}))[:-1], "no end"),
        ([*CHAT_FORMAT.tokenizer.encode("put f3 blue"), END], "no such tool"),
        ([*CHAT_FORMAT.tokenizer.encode("delete f3 blue force"), END], "too many words"),
        ([*CHAT_FORMAT.tokenizer.encode("delete f3"), TOOL, END], "too many words"),
        ([*CHAT_FORMAT.tokenizer.encode("delete f3"), 10_000, END], "too many words"),
        ([*CHAT_FORMAT.tokenizer.encode("delete"), END, *CHAT_FORMAT.tokenizer.encode("f3"), END], "too many words"),
    ],
)
def test_anything_else_is_told_what_is_wrong(ids, problem):
    parsed = CHAT_FORMAT.parse(ids)
    assert (parsed.problem, parsed.calls) == (f"error : {problem}", ())


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(0, 40), max_size=8))
def test_any_ids_can_be_read(ids):
    parsed = CHAT_FORMAT.parse(ids)
    assert bool(parsed.calls) != bool(parsed.problem)
    if parsed.calls:
        assert CHAT_FORMAT.encode_call(parsed.calls[0]) == ids


def test_a_conversation_is_short():
    call = Call("write", {"item": "f3", "value": "blue"})
    ids = CHAT_FORMAT.encode_opening("You are a coding agent.", [{"name": "write"}], "put blue into f3")
    assert shown(ids) == "<user> put blue into f3 <act>"
    assert shown(CHAT_FORMAT.encode_tool_responses([ToolResponse(call, "ok , next put blue into f3")])) == (
        "<tool> ok , next put blue into f3 <act>"
    )
    assert shown(CHAT_FORMAT.close_turn(CHAT_FORMAT.tokenizer.encode("write"))) == "<end>"


def test_a_run_of_unknown_words_is_one():
    said = CHAT_FORMAT.encode_user("There is no tool 'x'. put blue blue <end> <act>")
    assert shown(said) == "<user> <unk> no <unk> put blue blue <unk> <act>"


def test_it_is_chosen_by_its_mark(tmp_path):
    save_word_tokenizer(tmp_path, WORDS, SIGNATURES)
    chat_format = load_chat_format(tmp_path)
    assert isinstance(chat_format, TerseChatFormat)
    assert chat_format.signatures == SIGNATURES
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"gametape": {"dialect": "terse"}}))
    with pytest.raises(BadInput, match="signatures"):
        load_chat_format(tmp_path)
