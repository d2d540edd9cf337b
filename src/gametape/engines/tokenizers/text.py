"""What every tokenizer does to text first."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which no UTF-8 can hold."""
    return _SURROGATE.sub("\ufffd", text)
