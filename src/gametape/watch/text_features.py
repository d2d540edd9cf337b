"""Text features that monitors compare: words without case and number, and the marks between them."""

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache

_ALONE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Scripts written without spaces: every character is a word."""
_WORD = re.compile(rf"[{_ALONE}]|[^\s{_ALONE}]+")
"""Text between spaces: a path or a version is one word, or every list of files would be a template."""
_EDGES = ".,;:!?'\"`()[]{}<>*_-"
_SAYS = re.compile(r"\w")
_MARK = re.compile(
    r"(?![\w\s,'\"()/=])(?:"  # with which none begins, and which most of a text is
    r"\\\w+|</?\w+>|<\|\w+\|>|\*\*|```|[!?]{2,}|\.{3,}(?!\w)|\${1,2}|~+|[:;]-?[)(D]|[^\x00-\x7f\w\s\u00a1-\u00bf\u2010-\u2027\u3000-\u303f\uff00-\uffef]+)"
)
"""Markup, formulas, emphasis, emoji and the like; ordinary punctuation says nothing."""
_MOST_WORDS = 400
PHRASE = 4
_BITS = 512
_DIGITS = "0123456789"
_IN_NUMBERS = _DIGITS + ".,:/%+-tz"
"""Characters of numbers, and of ISO 8601 times."""
_MOST_CHARACTERS = 8000

Ngram = tuple[str, ...]


def normalised_words(text: str) -> list[str]:
    """The first words, in lower case and without punctuation at their edges; every number is the same word."""
    stripped = (word.strip(_EDGES) for word in _WORD.findall(text[:_MOST_CHARACTERS].lower())[:_MOST_WORDS])
    words = (word for word in stripped if word and (word[0].isalnum() or _SAYS.search(word)))
    return ["0" if word[0] in _DIGITS and not word.strip(_IN_NUMBERS) else word for word in words]


def word_ngrams(words: Sequence[str]) -> set[Ngram]:
    """Every run of four words that is not mostly numbers. A shorter text is a phrase of its own."""
    if len(words) < PHRASE:
        return {tuple(words)} if words and set(words) != {"0"} else set()
    grams = zip(words, words[1:], words[2:], words[3:], strict=False)
    return {gram for gram in grams if gram.count("0") < 2} if "0" in words else set(grams)


def fingerprint(words: Sequence[str]) -> int:
    """The set of words as bits, one for each word's hash: sets are then compared in one operation."""
    bits = 0
    for word in words:
        bits |= _bit_of(word)
    return bits


@lru_cache(maxsize=1 << 16)
def _bit_of(word: str) -> int:
    return 1 << (zlib.crc32(word.encode(errors="replace")) % _BITS)


def text_marks(text: str, words: Sequence[str]) -> set[str]:
    """The marks of a text, and how it begins and ends: the places where tics sit."""
    marks = set(_MARK.findall(text[:_MOST_CHARACTERS]))
    if len(words) > PHRASE:
        marks.add(f"begins: {words[0]} {words[1]}")
        marks.add(f"ends: {words[-2]} {words[-1]}")
    return marks


def printable(text: str) -> str:
    """Text with control characters replaced, safe for a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)


def one_line(text: str) -> str:
    """The text on one line and without control characters, safe for a terminal."""
    return printable(" ".join(text.split()))
