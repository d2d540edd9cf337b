"""Functions over text that tokenizers and chat formats share."""

import re
from collections.abc import Sequence

_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which no UTF-8 can hold."""
    return _SURROGATE.sub("\ufffd", text)


def common_prefix_length(a: Sequence[object], b: Sequence[object]) -> int:
    """How many leading characters or ids are the same."""
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
