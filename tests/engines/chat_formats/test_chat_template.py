"""Chat templates taken apart: put together again they say what the template would have said."""

import pytest
from hypothesis import given, settings

from gametape.core.errors import BadInput
from gametape.engines.chat_formats.chat_template import ChatTemplate, read_turn_frame
from gametape.engines.chat_formats.turn_frame import encode_pieces
from gametape.engines.tokenizers.trained import TrainedTokenizer

from ..tiny import CHATML, HERMES, LLAMA, NO_SYSTEM, texts, tokenizer_document

TOKENIZER = TrainedTokenizer(tokenizer_document())
TALK = [("system", "Be good."), ("user", "Hello"), ("assistant", "Yes?"), ("user", "Read it.")]


def frame(source):
    return read_turn_frame(ChatTemplate(source, {"bos_token": "<|endoftext|>"}), TOKENIZER, [0])


@pytest.mark.parametrize("source", [CHATML, HERMES, LLAMA, NO_SYSTEM], ids=["chatml", "hermes", "llama", "no system"])
def test_a_conversation_reads_as_the_template_writes_it(source):
    messages = [{"role": role, "content": text} for role, text in TALK]
    if source is NO_SYSTEM:
        messages = [{"role": "user", "content": "Be good.\n\nHello"}, *messages[2:]]
    taken_apart = frame(source)
    turn = TOKENIZER.encode("Yes?")
    ids = encode_pieces(taken_apart.opening, {"system": "Be good.", "user": "Hello"}, TOKENIZER)
    ids += [
        *turn,
        *taken_apart.close_turn(turn),
        *encode_pieces(taken_apart.user_message, {"user": "Read it."}, TOKENIZER),
    ]
    expected = ChatTemplate(source, {"bos_token": "<|endoftext|>"}).render(messages)
    assert TOKENIZER.decode_with_special(ids) == expected
    assert ids == TOKENIZER.encode_with_special(expected)


@settings(deadline=None, max_examples=60)
@given(texts, texts)
def test_what_is_said_adds_no_marker(system, user):
    taken_apart = frame(CHATML)
    said = encode_pieces(taken_apart.opening, {"system": system, "user": user}, TOKENIZER)
    silent = encode_pieces(taken_apart.opening, {"system": "", "user": ""}, TOKENIZER)
    markers = [i for i in said if i in TOKENIZER.special_ids]
    assert markers == [i for i in silent if i in TOKENIZER.special_ids]


def test_a_turn_that_ended_itself_is_not_ended_twice():
    taken_apart = frame(CHATML)
    assert taken_apart.stop_ids == (0, 2)
    assert taken_apart.close_turn([50, 2]) == taken_apart.close_turn([50, 0]) == list(taken_apart.end[1:])
    assert taken_apart.close_turn([50]) == list(taken_apart.end)
    assert taken_apart.end[0] == 2


def test_generation_marks_are_passed_over():
    marked = CHATML.replace("{{ m['content'] }}", "{% generation %}{{ m['content'] }}{% endgeneration %}")
    assert frame(marked) == frame(CHATML)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{% for", "cannot be read"),
        ("{{ raise_exception('never') }}", "never"),
        ("hello", "leaves out"),
        ("{{ messages[0].content.__class__.__mro__ }}", "chat template"),
        ("{{ messages.append(1) }}", "chat template"),
    ],
)
def test_templates_that_cannot_be_used_are_refused_in_one_line(source, words):
    with pytest.raises(BadInput) as refused:
        frame(source)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
