"""What a warm start learns from in worlds: episodes and hints, none of which says a rule under test."""

import asyncio
from random import Random

import pytest

from gametape.core.config import WarmStartConfig
from gametape.engines.chat_formats.byte_format import byte_chat_format
from gametape.engines.chat_formats.terse import TerseChatFormat
from gametape.engines.tokenizers.trained import TrainedTokenizer
from gametape.engines.tokenizers.words import word_tokenizer_json
from gametape.tasks.worlds.rules import PRACTICE_MARKINGS, SHARED_RULES
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.tools import tool_signatures, vocabulary_words
from gametape.train.lessons import world_lesson

TERSE = TerseChatFormat(TrainedTokenizer(word_tokenizer_json(vocabulary_words())), tool_signatures())
SPEC = WorldSpec(horizon=9, load_bearing=2, base_rate=0.2)


def lessons_of(chat_format, count, **warm):
    return [
        asyncio.run(
            world_lesson(
                SPEC.model_copy(update={"seed": seed}), chat_format, WarmStartConfig.model_validate(warm), Random(seed)
            )
        )
        for seed in range(count)
    ]


def test_no_hint_says_a_rule_under_test():
    texts = [
        TERSE.tokenizer.decode_with_special(segment.ids) for one in lessons_of(TERSE, 40) for segment in one.segments
    ]
    hints = [text.partition("rule :")[2].split("<")[0] for text in texts if "rule :" in text]
    said = [(words[1], words[4]) for hint in hints if len(words := hint.split()) == 5 and words[3] == "takes"]
    assert {marking for marking, _ in said} > set(PRACTICE_MARKINGS[:4])
    assert not [pair for pair in said if pair in SHARED_RULES.items()]


def test_without_hints_an_episode_is_all_there_is():
    for lesson in lessons_of(TERSE, 8, hint_share=0.0):
        (segment,) = lesson.segments
        assert "rule :" not in TERSE.tokenizer.decode_with_special(segment.ids)


@pytest.mark.parametrize("hint_share", [0.0, 1.0])
def test_any_chat_format_speaks_them(hint_share):
    for lesson in lessons_of(byte_chat_format(), 4, hint_share=hint_share):
        assert all(0 < sum(segment.mask) < len(segment.ids) for segment in lesson.segments)
        assert (len(lesson.segments) > 1) == bool(hint_share)
