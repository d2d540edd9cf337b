"""A hint is one more message before the turn, as the model's own format would have written it."""

import pytest

from gametape.engines.conversation import Answer, Call
from gametape.engines.dialects.byte_frame import byte_dialect
from gametape.engines.dialects.choosing import dialect_of
from gametape.engines.dialects.template import ChatTemplate
from gametape.engines.hinting import spliced
from gametape.engines.tokenizing.byte import ASSISTANT, END, SYSTEM, USER
from gametape.engines.tokenizing.words import save_words

from .tiny import CHATML, HERMES, LLAMA, NO_SYSTEM, TOOLS, fetched_smollm2, tiny_dialect

HINT = "rule : a sealed file takes patch"
INSTRUCT = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}<|im_end|>"
    "{% else %}[{{ m.content }}]{% endif %}{% endfor %}"
)
"""A format whose turns begin where the message before them ends."""


def test_bytes():
    prompt = byte_dialect().opening("s", [], "u")
    ids = spliced(byte_dialect(), prompt, "h")
    assert ids == [SYSTEM, *b"s", END, USER, *b"u", END, USER, *b"h", END, ASSISTANT]
    assert prompt[-1] == ASSISTANT


def test_words(tmp_path):
    save_words(tmp_path, [*HINT.split(), "ok"], {"look": []})
    dialect = dialect_of(tmp_path)
    call = Call("look", {})
    ids = spliced(dialect, dialect.answered([Answer(call, "ok")]), HINT)
    assert dialect.tokenizer.decode_marked(ids) == f"<tool> ok <user> {HINT} <act>"


@pytest.mark.parametrize("template", [CHATML, HERMES, LLAMA, NO_SYSTEM], ids=["chatml", "hermes", "llama", "no system"])
def test_the_message_stands_where_the_turn_would_begin(tmp_path, template):
    """After the opening and after an answer: the same ids, the hint, and the same beginning of a turn."""
    dialect = tiny_dialect(tmp_path, template)
    header = list(dialect.header)
    assert header
    for prompt in (
        dialect.opening("system", TOOLS, "user"),
        dialect.answered([Answer(Call("read", {"path": "a.py"}), "text")]),
        dialect.told("more"),
    ):
        assert prompt[-len(header) :] == header
        ids = spliced(dialect, prompt, HINT)
        assert ids == [*prompt[: -len(header)], *dialect.told(HINT)]
        assert ids[-len(header) :] == header
        assert spliced(dialect, ids, "again")[: -len(dialect.told("again"))] == ids[: -len(header)]


def test_it_is_what_the_template_would_have_written(tmp_path):
    dialect = tiny_dialect(tmp_path, CHATML)
    messages = [{"role": role, "content": text} for role, text in (("system", "s"), ("user", "u"), ("user", HINT))]
    rendered = ChatTemplate(CHATML, {}).render(messages)
    assert spliced(dialect, dialect.opening("s", [], "u"), HINT) == dialect.tokenizer.encode_marked(rendered)


def test_without_a_beginning_of_its_own_an_empty_turn_goes_before(tmp_path):
    dialect = tiny_dialect(tmp_path, INSTRUCT)
    assert not dialect.header
    prompt = dialect.opening("s", [], "u")
    assert spliced(dialect, prompt, HINT) == [*prompt, *dialect.closing(()), *dialect.told(HINT)]


def test_the_embedded_model():
    dialect = dialect_of(fetched_smollm2())
    prompt = dialect.opening("s", TOOLS, "u")
    text = dialect.tokenizer.decode_marked(spliced(dialect, prompt, HINT))
    assert text.endswith(f"<|im_end|>\n<|im_start|>user\n{HINT}<|im_end|>\n<|im_start|>assistant\n")
