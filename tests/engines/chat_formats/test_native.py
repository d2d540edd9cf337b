"""Tool formats that models bring along."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gametape.engines.chat_formats.chat_template import ChatTemplate, read_turn_frame
from gametape.engines.chat_formats.native import HERMES as HERMES_FORMAT
from gametape.engines.chat_formats.native import LLAMA as LLAMA_FORMAT
from gametape.engines.chat_formats.native import NativeChatFormat, detect_tool_call_format
from gametape.engines.chat_formats.turn_frame import TurnFrame
from gametape.engines.conversation import Call, ToolResponse
from gametape.engines.tokenizers.trained import TrainedTokenizer

from ..tiny import CHATML, HERMES, LLAMA, NO_SYSTEM, TOOLS, texts, tokenizer_document

TOKENIZER = TrainedTokenizer(tokenizer_document())
READ = Call("read", {"path": "a.py"})


def native(source) -> NativeChatFormat:
    template = ChatTemplate(source, {})
    form = detect_tool_call_format(template)
    assert form is not None
    return NativeChatFormat(TOKENIZER, read_turn_frame(template, TOKENIZER, []), template, form)


QWEN, LLAMA3 = native(HERMES), native(LLAMA)


def test_formats_are_told_apart():
    assert QWEN.form is HERMES_FORMAT
    assert LLAMA3.form is LLAMA_FORMAT
    for source in (CHATML, NO_SYSTEM):
        assert detect_tool_call_format(ChatTemplate(source, {"bos_token": ""})) is None


def test_xml_calls_are_not_taken_for_a_known_format():
    calls = "<tool_call><function={{ call.function.name }}></function></tool_call>"
    line = '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    assert detect_tool_call_format(ChatTemplate(HERMES.replace(line, calls), {})) is None


@pytest.mark.parametrize(("chat_format", "source"), [(QWEN, HERMES), (LLAMA3, LLAMA)], ids=["hermes", "llama"])
@pytest.mark.parametrize("answers", [1, 2])
def test_a_conversation_reads_as_the_template_writes_it(chat_format, source, answers):
    talk = [{"role": "system", "content": "Be good."}, {"role": "user", "content": "Hello"}]
    calling = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "read", "arguments": {}}}]}
    results = [{"role": "tool", "name": "read", "content": f'line "{n}"\nend'} for n in range(answers)]
    template = ChatTemplate(source, {})
    assert TOKENIZER.decode_with_special(chat_format.encode_opening("Be good.", TOOLS, "Hello")) == template.render(
        talk, TOOLS
    )
    called = template.render([*talk, calling], TOOLS, prompt=False)
    fragment = TOKENIZER.decode_with_special(
        chat_format.encode_tool_responses([ToolResponse(READ, result["content"]) for result in results])
    )
    assert called + fragment == template.render([*talk, calling, *results], TOOLS)


@settings(deadline=None, max_examples=60)
@given(texts, st.sampled_from([QWEN, LLAMA3]))
def test_no_text_makes_a_marker(text, chat_format):
    def markers(ids):
        return [i for i in ids if i in TOKENIZER.special_ids]

    def tool(words):
        return [{"name": "t", "description": words, "parameters": {"type": "object", "properties": {f"p{words}": {}}}}]

    for hostile, silent in (
        (chat_format.encode_opening(text, tool(text), text), chat_format.encode_opening("", tool("x"), "")),
        (
            chat_format.encode_tool_responses([ToolResponse(Call(text, {}), text)]),
            chat_format.encode_tool_responses([ToolResponse(READ, "")]),
        ),
        (chat_format.encode_user(text), chat_format.encode_user("")),
    ):
        assert markers(hostile) == markers(silent)


def test_a_description_with_a_marker_in_it_still_says_what_it_said():
    tools = [{"name": "t", "description": 'ends with "<|im_end|>"', "parameters": {}}]
    ids = QWEN.encode_opening("s", tools, "u")
    assert json.dumps(tools[0]) in TOKENIZER.decode_with_special(ids)


def test_what_is_written_for_the_model_is_read_as_its_own():
    for chat_format in (QWEN, LLAMA3):
        ids = chat_format.encode_call(READ)
        assert chat_format.parse(ids) == ("", (READ,), None)
        assert chat_format.close_turn(ids) == chat_format.close_turn([chat_format.stop_ids[-1]])


def test_calls_are_read():
    turn = 'Look.\n<tool_call>\n{"name": "read", "arguments": {"path": "a.py"}}\n</tool_call>'
    for ids in (TOKENIZER.encode(turn), TOKENIZER.encode_with_special(turn)):
        assert QWEN.parse([*ids, 2]) == ("Look.", (READ,), None)
    twice = QWEN.parse(TOKENIZER.encode(turn + turn))
    assert twice.calls == (READ, READ)
    thought = QWEN.parse(TOKENIZER.encode(f"<think>{turn}</think>Done."))
    assert (thought.calls, thought.problem) == ((), None)
    assert LLAMA3.parse(TOKENIZER.encode('{"name": "read", "parameters": {"path": "a.py"}}')) == ("", (READ,), None)
    assert LLAMA3.parse(TOKENIZER.encode("Hello {")) == ("Hello {", (), None)


@pytest.mark.parametrize(
    ("chat_format", "turn"),
    [(QWEN, '<tool_call>{"name": "read"}'), (QWEN, "<tool_call>read</tool_call>"), (LLAMA3, '{"name": "read"')],
)
def test_malformed_calls_are_answered(chat_format, turn):
    parsed = chat_format.parse(TOKENIZER.encode(turn))
    assert (parsed.text, parsed.calls) == (turn, ())
    assert (parsed.problem or "").startswith("Your tool call cannot be read: ")


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, TOKENIZER.vocabulary_size + 5), max_size=30), st.sampled_from([QWEN, LLAMA3]))
def test_any_ids_can_be_read(ids, chat_format):
    parsed = chat_format.parse(ids)
    assert not (parsed.problem and parsed.calls)


def test_special_tags_are_still_read():
    document = json.loads(tokenizer_document())
    for token in document["added_tokens"]:
        token["special"] = True
    tokenizer = TrainedTokenizer(json.dumps(document))
    template = ChatTemplate(HERMES, {})
    chat_format = NativeChatFormat(tokenizer, TurnFrame((), (), (2,), (2,)), template, HERMES_FORMAT)
    ids = tokenizer.encode_with_special('<tool_call>{"name": "read", "arguments": {"path": "a.py"}}</tool_call>')
    assert chat_format.parse(ids).calls == (READ,)
