"""Bytes as tokens."""

from hypothesis import given, settings

from gametape.engines.tokenizers.byte import END, ByteTokenizer

from ..tiny import texts


@settings(deadline=None, max_examples=100)
@given(texts)
def test_text_comes_back_and_makes_no_marker(text):
    tokenizer = ByteTokenizer()
    ids = tokenizer.encode(text)
    assert tokenizer.special_ids.isdisjoint(ids)
    assert tokenizer.decode(ids) == text.replace("\ud800", "\ufffd")


def test_broken_bytes_and_markers_decode():
    assert ByteTokenizer().decode([0xC3, END, 0x41, 999]) == "\ufffdA"
