"""The plain form: what is written is read back, and nothing that a model says breaks the reading."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gametape.engines.chat_formats.byte_format import byte_chat_format
from gametape.engines.chat_formats.fenced import parse_fenced, write_fenced_call
from gametape.engines.conversation import Call, ToolResponse
from gametape.engines.tokenizers.byte import ASSISTANT, END, SYSTEM, USER
from tests.patience import effort

from ..tiny import TOOLS, texts

DIALECT = byte_chat_format()
READ = Call("read", {"path": "a.py"})


@settings(deadline=None, max_examples=100)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30), st.text(min_size=1), texts)
def test_a_call_is_read_back(said, name, argument):
    argument = argument.replace("\ud800", "")
    said = said.replace("`", "")
    parsed = parse_fenced(f"{said}\n{write_fenced_call(name, {'a': argument})}")
    assert parsed.calls == (Call(name, {"a": argument}),)
    assert (parsed.text, parsed.problem) == (said.strip(), None)


@settings(deadline=None, max_examples=200)
@given(texts | st.lists(st.sampled_from(["```tool\n", "```\n", "```tool", "{}", '{"name": "a"}', "\n"])).map("".join))
def test_any_turn_can_be_read(turn):
    parsed = parse_fenced(turn)
    assert not (parsed.problem and parsed.calls)
    assert parsed.problem is None or "\n" not in parsed.problem
    if "```tool" not in turn:
        assert (parsed.text, parsed.problem) == (turn.strip(), None)


@given(st.binary(max_size=40))
def test_any_bytes_can_be_read(sampled):
    parsed = DIALECT.parse([*sampled, END])
    assert not (parsed.problem and parsed.calls)
    parsed.text.encode()


def test_what_is_written_for_the_model_is_read_as_its_own():
    ids = DIALECT.encode_call(READ)
    assert (DIALECT.parse(ids), DIALECT.close_turn(ids)) == (("", (READ,), None), [])


def test_two_calls_are_both_read():
    turn = f"First.\n{write_fenced_call('read', {'path': 'a.py'})}\nThen.\n{write_fenced_call('finish', {})}\n"
    assert parse_fenced(turn) == ("First.\nThen.", (READ, Call("finish", {})), None)


def test_white_space_around_fences_does_not_matter():
    assert parse_fenced('x\r\n  ```tool \r\n{"name": "read",\n "arguments": {"path": "a.py"}}\n ``` ').calls == (READ,)


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        ('```tool\n{"name": "read"}', "does not end"),
        ('```tool {"name": "read"}\n```', "line of its own"),
        ("```tool\n```", "not valid JSON"),
        (f"{write_fenced_call('read', {})}\n```tool\nread a.py\n```", "not valid JSON"),
    ],
)
def test_a_malformed_call_stays_in_the_text_and_no_call_is_made(turn, words):
    parsed = parse_fenced(turn)
    assert parsed.calls == ()
    assert words in (parsed.problem or "")
    assert parsed.text == turn


def test_other_fences_are_text():
    turn = "```python\nprint(1)\n```\n```toolbox\n```"
    assert parse_fenced(turn) == (turn, (), None)


def test_reading_takes_time_in_proportion():
    assert effort(lambda: (parse_fenced("```tool\n" * 200_000), parse_fenced("```tool\n{}\n" * 50_000))) < 250


def test_markers_stand_around_what_is_said():
    opening = DIALECT.encode_opening("sys", [], "hello")
    assert opening == [SYSTEM, *b"sys", END, USER, *b"hello", END, ASSISTANT]
    assert DIALECT.encode_user("more") == [USER, *b"more", END, ASSISTANT]
    assert DIALECT.encode_tool_responses([ToolResponse(READ, "text"), ToolResponse(READ, "gone", failed=True)]) == [
        *(USER, *b"Result of read:\ntext\n\nError from read:\ngone", END, ASSISTANT)
    ]


def test_a_turn_that_was_cut_off_is_closed():
    assert DIALECT.close_turn([65, END]) == []
    assert DIALECT.close_turn([65]) == [END]
    assert DIALECT.close_turn([]) == [END]


def test_the_system_text_says_how_tools_are_called():
    system = DIALECT.tokenizer.decode(DIALECT.encode_opening("Be good.", TOOLS, ""))
    assert system.startswith("Be good.\n\n")
    assert (
        "- read: Read a file.\n    path (string): which file\n    limit (integer, optional)\n- finish: End.\n" in system
    )
    assert parse_fenced(system).calls == (READ,)
