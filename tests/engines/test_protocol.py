"""A hint is one more message before the turn, as the model's own format would have written it."""

import pytest

from gametape.engines.chat_formats.byte_format import byte_chat_format
from gametape.engines.chat_formats.chat_template import ChatTemplate
from gametape.engines.chat_formats.loader import load_chat_format
from gametape.engines.chat_formats.protocol import insert_hint
from gametape.engines.conversation import Call, ToolResponse
from gametape.engines.tokenizers.byte import ASSISTANT, END, SYSTEM, USER
from gametape.engines.tokenizers.words import save_word_tokenizer

from .tiny import CHATML, HERMES, LLAMA, NO_SYSTEM, TOOLS, fetched_smollm2, tiny_chat_format

HINT = "rule : a sealed file takes patch"
INSTRUCT = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}<|im_end|>"
    "{% else %}[{{ m.content }}]{% endif %}{% endfor %}"
)
"""A format whose turns begin where the message before them ends."""


def test_bytes():
    prompt = byte_chat_format().encode_opening("s", [], "u")
    ids = insert_hint(byte_chat_format(), prompt, "h")
    assert ids == [SYSTEM, *b"s", END, USER, *b"u", END, USER, *b"h", END, ASSISTANT]
    assert prompt[-1] == ASSISTANT


def test_words(tmp_path):
    save_word_tokenizer(tmp_path, [*HINT.split(), "ok"], {"look": []})
    chat_format = load_chat_format(tmp_path)
    call = Call("look", {})
    ids = insert_hint(chat_format, chat_format.encode_tool_responses([ToolResponse(call, "ok")]), HINT)
    assert chat_format.tokenizer.decode_with_special(ids) == f"<tool> ok <user> {HINT} <act>"


@pytest.mark.parametrize("template", [CHATML, HERMES, LLAMA, NO_SYSTEM], ids=["chatml", "hermes", "llama", "no system"])
def test_the_message_stands_where_the_turn_would_begin(tmp_path, template):
    """After the opening and after an answer: the same ids, the hint, and the same beginning of a turn."""
    chat_format = tiny_chat_format(tmp_path, template)
    header = list(chat_format.header)
    assert header
    for prompt in (
        chat_format.encode_opening("system", TOOLS, "user"),
        chat_format.encode_tool_responses([ToolResponse(Call("read", {"path": "a.py"}), "text")]),
        chat_format.encode_user("more"),
    ):
        assert prompt[-len(header) :] == header
        ids = insert_hint(chat_format, prompt, HINT)
        assert ids == [*prompt[: -len(header)], *chat_format.encode_user(HINT)]
        assert ids[-len(header) :] == header
        assert insert_hint(chat_format, ids, "again")[: -len(chat_format.encode_user("again"))] == ids[: -len(header)]


def test_it_is_what_the_template_would_have_written(tmp_path):
    chat_format = tiny_chat_format(tmp_path, CHATML)
    messages = [{"role": role, "content": text} for role, text in (("system", "s"), ("user", "u"), ("user", HINT))]
    rendered = ChatTemplate(CHATML, {}).render(messages)
    assert insert_hint(
        chat_format, chat_format.encode_opening("s", [], "u"), HINT
    ) == chat_format.tokenizer.encode_with_special(rendered)


def test_without_a_beginning_of_its_own_an_empty_turn_goes_before(tmp_path):
    chat_format = tiny_chat_format(tmp_path, INSTRUCT)
    assert not chat_format.header
    prompt = chat_format.encode_opening("s", [], "u")
    assert insert_hint(chat_format, prompt, HINT) == [
        *prompt,
        *chat_format.close_turn(()),
        *chat_format.encode_user(HINT),
    ]


def test_the_embedded_model():
    chat_format = load_chat_format(fetched_smollm2())
    prompt = chat_format.encode_opening("s", TOOLS, "u")
    text = chat_format.tokenizer.decode_with_special(insert_hint(chat_format, prompt, HINT))
    assert text.endswith(f"<|im_end|>\n<|im_start|>user\n{HINT}<|im_end|>\n<|im_start|>assistant\n")
