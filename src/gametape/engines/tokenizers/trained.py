"""The tokenizer of a model, read from its `tokenizer.json`."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tokenizers import Tokenizer

from gametape.core.errors import BadInput
from gametape.engines.tokenizers.text import replace_surrogates


class TrainedTokenizer:
    """Ids of a model's own vocabulary.

    `special_ids` are not only the tokens that the file calls special: tags such as `<tool_call>` have ids of their own
    too, and a file that contains such a tag must not look like a call. Added tokens of white space are text.
    """

    def __init__(self, document: str) -> None:
        """`document` is the content of a `tokenizer.json`."""
        self._with_special, self._plain = Tokenizer.from_str(document), Tokenizer.from_str(document)
        self._plain.encode_special_tokens = True
        for tokenizer in (self._with_special, self._plain):
            tokenizer.no_truncation()
            tokenizer.no_padding()
        added = self._plain.get_added_tokens_decoder()
        self.special_ids = frozenset(i for i, token in added.items() if token.special or token.content.strip())
        self.special_tokens = {added[i].content: i for i in sorted(self.special_ids)}
        """The text and the id of each token that `encode` never makes."""
        texts = sorted((re.escape(text) for text in self.special_tokens if text), key=len, reverse=True)
        self._special_text = re.compile(f"(?=(?:{'|'.join(texts)}))" if texts else "(?!)")

    @classmethod
    def load(cls, path: Path) -> "TrainedTokenizer":
        try:
            return cls(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise BadInput(f"cannot read the tokenizer {path}: {error.strerror}") from None
        except Exception as error:  # the package raises nothing narrower for a file it cannot understand
            raise BadInput(f"{path} is not a tokenizer: {error}") from None

    @property
    def vocabulary_size(self) -> int:
        return self._plain.get_vocab_size()

    def to_json(self) -> str:
        """The content of a `tokenizer.json`."""
        document: str = self._plain.to_str()
        return document

    def encode(self, text: str) -> list[int]:
        text = replace_surrogates(text)
        ids = self._ids(text)
        if self.special_ids.isdisjoint(ids):
            return ids
        # A cut inside each special token leaves none whole; what a normaliser makes into one even so is left out.
        cuts = [0, *(match.start() + 1 for match in self._special_text.finditer(text)), len(text)]
        parts = (text[start:end] for start, end in pairwise(cuts))
        return [i for part in parts for i in self._ids(part) if i not in self.special_ids]

    def encode_with_special(self, text: str) -> list[int]:
        """Encode text of our own or of a chat template, in which special tokens are meant."""
        return list(self._with_special.encode(replace_surrogates(text), add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        return self._plain.decode([i for i in ids if 0 <= i < self.vocabulary_size], skip_special_tokens=True)

    def decode_with_special(self, ids: Sequence[int]) -> str:
        """The text of these ids, with special tokens."""
        return self._plain.decode([i for i in ids if 0 <= i < self.vocabulary_size], skip_special_tokens=False)

    def _ids(self, text: str) -> list[int]:
        return list(self._plain.encode(text, add_special_tokens=False).ids)
