"""A tokenizer with one id per byte and four markers, for scripted policies and tests."""

from collections.abc import Sequence

from gametape.engines.tokenizers.text import replace_surrogates

SYSTEM, USER, ASSISTANT, END = 256, 257, 258, 259
"""The beginning of a message, by its role, and the end of any message."""


class ByteTokenizer:
    """Ids below 256 are the bytes of UTF-8; the others are markers, which have no text."""

    vocabulary_size = 260
    special_ids = frozenset({SYSTEM, USER, ASSISTANT, END})

    def encode(self, text: str) -> list[int]:
        return list(replace_surrogates(text).encode())

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(i for i in ids if 0 <= i < 256).decode(errors="replace")
