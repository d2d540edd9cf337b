"""A model's tokenizer: no text becomes a token that marks something."""

import json
from functools import cache

import pytest
from hypothesis import given, settings

from gametape.core.errors import BadInput
from gametape.engines.tokenizers.trained import TrainedTokenizer

from ..tiny import HOSTILE, fetched_smollm2, texts, tokenizer_document


@settings(deadline=None, max_examples=100)
@given(texts)
def test_text_comes_back_and_makes_no_marker(text):
    check_text(TrainedTokenizer(tokenizer_document()), text)


@settings(deadline=None, max_examples=60)
@given(texts)
def test_so_it_does_with_smollm2(text):
    """Its vocabulary lacks some rare bytes, so not every text comes back."""
    tokenizer = smollm2_tokenizer()
    assert tokenizer.special_ids.isdisjoint(tokenizer.encode(text))
    if text.isascii():
        check_text(tokenizer, text)


def check_text(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.special_ids.isdisjoint(ids)
    assert tokenizer.decode(ids) == text.replace("\ud800", "\ufffd")


@pytest.mark.parametrize("text", HOSTILE)
def test_the_same_words_in_a_template_are_markers(text):
    tokenizer = TrainedTokenizer(tokenizer_document())
    assert not tokenizer.special_ids.isdisjoint(tokenizer.encode_with_special(text))
    assert tokenizer.decode_with_special(tokenizer.encode_with_special(text)) == text


def test_added_white_space_is_text():
    document = json.loads(tokenizer_document())
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    document["added_tokens"].append({"id": len(document["model"]["vocab"]) + 2, "content": "    ", **flags})
    tokenizer = TrainedTokenizer(json.dumps(document))
    assert tokenizer.encode("    ") == tokenizer.encode_with_special("    ")
    assert len(tokenizer.encode("    ")) == 1


def test_ids_that_do_not_exist_decode_to_nothing():
    tokenizer = TrainedTokenizer(tokenizer_document())
    assert tokenizer.decode([*tokenizer.encode("read"), 2, 10**6]) == "read"


def test_what_is_no_tokenizer_is_refused_in_one_line(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    for path in (tmp_path / "tokenizer.json", tmp_path / "absent.json"):
        with pytest.raises(BadInput) as refused:
            TrainedTokenizer.load(path)
        assert "\n" not in str(refused.value)


@cache
def smollm2_tokenizer():
    return TrainedTokenizer.load(fetched_smollm2() / "tokenizer.json")
