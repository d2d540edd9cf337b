"""Words are tokens, markers never come from text, and transformers reads the same files the same way."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gametape.engines.tokenizers.trained import TrainedTokenizer
from gametape.engines.tokenizers.words import MARKERS, save_word_tokenizer, word_tokenizer_json

WORDS = ["put", "blue", "into", "f3", ",", "write"]
TOKENIZER = TrainedTokenizer(word_tokenizer_json(WORDS))


def test_a_word_is_a_token():
    ids = TOKENIZER.encode("put blue into f3 , purple")
    assert ids == [1, 2, 3, 4, 5, 0]
    assert TOKENIZER.decode(ids) == "put blue into f3 , <unk>"
    assert TOKENIZER.vocabulary_size == len(WORDS) + 1 + len(MARKERS)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from([*MARKERS, *WORDS, " ", "<unk>", "<", "end>", "é\ud800"])).map("".join))
def test_markers_never_come_from_text(text):
    assert TOKENIZER.special_ids.isdisjoint(TOKENIZER.encode(text))
    assert len(TOKENIZER.special_ids) == len(MARKERS)


def test_transformers_reads_it_the_same_way(tmp_path):
    auto = pytest.importorskip("transformers").AutoTokenizer
    save_word_tokenizer(tmp_path, WORDS, {"write": ["item", "value"]})
    loaded = auto.from_pretrained(tmp_path)
    text = "put blue into f3 , purple"
    assert loaded.encode(text, add_special_tokens=False) == TOKENIZER.encode(text)
    assert loaded.eos_token_id == TOKENIZER.special_tokens["<end>"]
    assert len(loaded) == TOKENIZER.vocabulary_size
    loaded.save_pretrained(tmp_path / "again")
    again = TrainedTokenizer.load(tmp_path / "again" / "tokenizer.json")
    assert again.encode(text) == TOKENIZER.encode(text)
    assert again.special_tokens == TOKENIZER.special_tokens
