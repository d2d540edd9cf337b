"""Constrained sampling: which tokens a grammar allows next, and where the turn may end.

The grammar is matched against the text of tokens, so special tokens are never part of it. Stop ids are allowed where
the grammar may end, and nowhere else.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gametape.core.errors import BadInput
from gametape.engines.chat_formats.protocol import Tokenizer
from gametape.engines.tokenizers.byte import ByteTokenizer
from gametape.engines.tokenizers.trained import TrainedTokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

_BITS = torch.arange(8, dtype=torch.uint8)


class GrammarMatcher:
    """The state of one completion in a grammar."""

    def __init__(self, inner: "LLMatcher", vocabulary: int) -> None:
        self._inner, self._vocabulary = inner, vocabulary

    def allowed_tokens(self, stop_ids: Sequence[int]) -> Tensor | None:
        """For each id whether it may come next. None at a dead end: no token is allowed, or the parser has given up."""
        bits = torch.frombuffer(bytearray(self._inner.compute_bitmask()), dtype=torch.uint8)
        allowed_V: Tensor = ((bits[:, None] >> _BITS) & 1).flatten().bool()
        may_end = bool(allowed_V[self._vocabulary])
        allowed_V = allowed_V[: self._vocabulary]
        allowed_V[[i for i in stop_ids if i < self._vocabulary]] = may_end
        return None if self._inner.is_error() or not allowed_V.any() else allowed_V

    def consume(self, token: int) -> None:
        self._inner.consume_token(token)

    @property
    def finished(self) -> bool:
        """Whether the grammar is fulfilled and nothing may follow."""
        return self._inner.is_accepting() and self._inner.is_stopped()


class GrammarCompiler:
    """Compiles grammars for the vocabulary of one model; `vocabulary` counts its ids, also those without a token."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: int) -> None:
        self._tokenizer, self._vocabulary = tokenizer, vocabulary
        self._compiled = lru_cache(maxsize=64)(self._compile)

    def matcher(self, grammar: str) -> GrammarMatcher | None:
        """A matcher at the beginning of a grammar in EBNF.

        None where llguidance is not installed, or does not support the tokenizer.
        """
        return GrammarMatcher(self._compiled(grammar).deep_copy(), self._vocabulary) if self._tokens else None

    def _compile(self, grammar: str) -> "LLMatcher":
        from llguidance import LLMatcher  # noqa: PLC0415 - optional
        from llguidance.gbnf_to_lark import gbnf_to_lark  # noqa: PLC0415

        try:
            lark = gbnf_to_lark(grammar)
        except Exception as error:  # the package raises nothing narrower for a text that it cannot read
            raise BadInput(f"the grammar cannot be read: {next(iter(str(error).splitlines()), '')}") from None
        assert self._tokens is not None
        compiled = LLMatcher(self._tokens, LLMatcher.grammar_from_lark(lark), log_level=0)
        if compiled.is_error():
            raise BadInput(f"the grammar cannot be used: {compiled.get_error().splitlines()[0]}")
        return compiled

    @cached_property
    def _tokens(self) -> "LLTokenizer | None":
        try:
            from llguidance import LLTokenizer, TokenizerWrapper  # noqa: PLC0415 - optional

            return LLTokenizer(TokenizerWrapper(_TokenBytes(self._tokenizer, self._vocabulary)))
        except (ImportError, ValueError):
            return None


class _TokenBytes:
    """The vocabulary in the form that llguidance takes. One more id than there are is the end of text."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, vocabulary: int) -> None:
        self._tokenizer = tokenizer
        self.tokens = [*_token_bytes(tokenizer, vocabulary), b""]
        self.eos_token_id = vocabulary
        self.special_token_ids = [i for i, text in enumerate(self.tokens) if not text]

    def __call__(self, text: bytes) -> list[int]:
        return self._tokenizer.encode(text.decode())


def _token_bytes(tokenizer: Tokenizer, vocabulary: int) -> list[bytes]:
    """The bytes of each id; empty for those that decode to nothing."""
    if isinstance(tokenizer, ByteTokenizer):
        return [bytes([i]) if i < 256 else b"" for i in range(vocabulary)]
    if not isinstance(tokenizer, TrainedTokenizer):
        raise ValueError(f"the ids of a {type(tokenizer).__name__} have no known bytes")
    from llguidance import LLTokenizer  # noqa: PLC0415 - optional

    known = LLTokenizer(tokenizer.to_json())
    texts = [
        tokenizer.decode([i]).encode() if i in tokenizer.special_ids else known.decode_bytes([i])
        for i in range(min(vocabulary, tokenizer.vocabulary_size))
    ]
    return texts + [b""] * (vocabulary - len(texts))


def mask_logits(
    logits_MV: Tensor, matchers: Sequence[GrammarMatcher | None], stop_ids: Sequence[Sequence[int]]
) -> tuple[Tensor, list[bool]]:
    """Minus infinity where a row's grammar forbids a token, and for each row whether it was constrained."""
    masks = [
        matcher.allowed_tokens(stops) if matcher else None for matcher, stops in zip(matchers, stop_ids, strict=True)
    ]
    rows = [at for at, mask in enumerate(masks) if mask is not None]
    if rows:
        allowed_FV = torch.stack([mask for mask in masks if mask is not None]).to(logits_MV.device)
        rows_F = torch.tensor(rows, device=logits_MV.device)
        kept_FV = logits_MV[rows_F].masked_fill(~allowed_FV, -torch.inf)
        logits_MV = logits_MV.index_copy(0, rows_F, kept_FV)
    return logits_MV, [mask is not None for mask in masks]
