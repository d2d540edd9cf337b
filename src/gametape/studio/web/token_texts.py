"""The text of single tokens, from the tokenizer that lies beside a run's first weights."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gametape.record.regular_file import read_regular
from gametape.studio.page import printable_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MOST_BYTES = 64 << 20
_MOST_KEPT = 4
_LONGEST = 200


class TokenTexts:
    """Texts by number; `#7` where no tokenizer is known."""

    def __init__(self, tokenizer: "Tokenizer | None" = None) -> None:
        self._tokenizer = tokenizer
        self._text = lru_cache(maxsize=100_000)(self._decode)

    @property
    def known(self) -> bool:
        return self._tokenizer is not None

    def of(self, ids: Sequence[Any]) -> list[str]:
        return [self._text(number) if isinstance(number, int) else "?" for number in ids]

    def _decode(self, number: int) -> str:
        text = None
        if self._tokenizer is not None and 0 <= number < 1 << 31:
            text = self._tokenizer.decode([number], skip_special_tokens=False)
            if not text or "\ufffd" in text:
                text = self._tokenizer.id_to_token(number)
        return printable_text(text)[:_LONGEST] if text else f"#{number}"


class TokenTextStore:
    """The tokenizers of the runs that were looked at last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, TokenTexts] = OrderedDict()
        self._lock = threading.Lock()

    def of_run(self, root: Path) -> TokenTexts:
        """A run without a tokenizer that can be read has numbers instead of texts."""
        path = root / "start" / "tokenizer.json"
        with self._lock:
            if path not in self._kept:
                self._kept[path] = _load(path)
            self._kept.move_to_end(path)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
            return self._kept[path]


def _load(path: Path) -> TokenTexts:
    from tokenizers import Tokenizer  # noqa: PLC0415 - slow to import, and only tapes need it

    try:
        if path.parent.is_symlink():
            return TokenTexts()
        return TokenTexts(Tokenizer.from_buffer(read_regular(path, _MOST_BYTES)))
    except Exception:  # the library has nothing more precise, and the tape is readable without texts
        return TokenTexts()
