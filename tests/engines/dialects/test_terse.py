"""The terse dialect: what is written is read back, and whatever else a policy says is answered in few words."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gametape.core.errors import BadInput
from gametape.engines.conversation import Answer, Call
from gametape.engines.dialects.choosing import dialect_of
from gametape.engines.dialects.terse import TerseDialect
from gametape.engines.tokenizing.trained import TrainedTokenizer
from gametape.engines.tokenizing.words import save_words, words_document

WORDS = ["put", "blue", "into", "f3", ",", "write", "delete", "error", ":", "no", "end", "ok", "next", "force"]
SIGNATURES = {"write": ["item", "value", "mode"], "delete": ["item", "value"], "look": []}
DIALECT = TerseDialect(TrainedTokenizer(words_document([*WORDS, "look"])), SIGNATURES)
USER, TOOL, ACT, END, PAD = (DIALECT.tokenizer.markers[f"<{name}>"] for name in ("user", "tool", "act", "end", "pad"))


def shown(ids):
    return DIALECT.tokenizer.decode_marked(ids)


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
    ids = DIALECT.written(call)
    assert DIALECT.parse(ids) == ("", (call,), None)
    assert len(ids) == len(call.arguments) + 2
    assert DIALECT.closing(ids) == []


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        ([], "no end"),
        ([END], "no such tool"),
        (DIALECT.written(Call("delete", {"item": "f3", "value": "blue"}))[:-1], "no end"),
        ([*DIALECT.tokenizer.encode("put f3 blue"), END], "no such tool"),
        ([*DIALECT.tokenizer.encode("delete f3 blue force"), END], "too many words"),
        ([*DIALECT.tokenizer.encode("delete f3"), TOOL, END], "too many words"),
        ([*DIALECT.tokenizer.encode("delete f3"), 10_000, END], "too many words"),
        ([*DIALECT.tokenizer.encode("delete"), END, *DIALECT.tokenizer.encode("f3"), END], "too many words"),
    ],
)
def test_anything_else_is_told_what_is_wrong(ids, problem):
    parsed = DIALECT.parse(ids)
    assert (parsed.problem, parsed.calls) == (f"error : {problem}", ())


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(0, 40), max_size=8))
def test_any_ids_can_be_read(ids):
    parsed = DIALECT.parse(ids)
    assert bool(parsed.calls) != bool(parsed.problem)
    if parsed.calls:
        assert DIALECT.written(parsed.calls[0]) == ids


def test_a_conversation_is_short():
    call = Call("write", {"item": "f3", "value": "blue"})
    ids = DIALECT.opening("You are a coding agent.", [{"name": "write"}], "put blue into f3")
    assert shown(ids) == "<user> put blue into f3 <act>"
    assert shown(DIALECT.answered([Answer(call, "ok , next put blue into f3")])) == (
        "<tool> ok , next put blue into f3 <act>"
    )
    assert shown(DIALECT.closing(DIALECT.tokenizer.encode("write"))) == "<end>"


def test_a_run_of_unknown_words_is_one():
    said = DIALECT.told("There is no tool 'x'. put blue blue <end> <act>")
    assert shown(said) == "<user> <unk> no <unk> put blue blue <unk> <act>"


def test_it_is_chosen_by_its_mark(tmp_path):
    save_words(tmp_path, WORDS, SIGNATURES)
    dialect = dialect_of(tmp_path)
    assert isinstance(dialect, TerseDialect)
    assert dialect.signatures == SIGNATURES
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"gametape": {"dialect": "terse"}}))
    with pytest.raises(BadInput, match="signatures"):
        dialect_of(tmp_path)
