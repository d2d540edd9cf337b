"""Replacement literals: of the same type and look, and unequal to the original under any equality a sane type may have.

Sane equalities ignore case, white space, small differences of numbers, or parts of a text (the build metadata of a
version). So letters and digits change, never only case or blanks; several words of a text change, the first and the
last among them; numbers move by far more than any tolerance and keep away from 0 and 1, which equal booleans.
"""

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

from gametape.syntax.constants import constant_value
from gametape.syntax.source import parse_expression

_VOWELS = "aeiou"
_CONSONANTS = "bcdfghklmnprstvwz"
_ESCAPE = re.compile(r"\\(?:N\{[^}]*\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|\r\n|.)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+|[0-9]+")
_OPENING = re.compile(r"([A-Za-z]{0,2})('''|\"\"\"|'|\")")

_REUSE_PROBABILITY = 0.85

MIN_CHANGE = 1.0
"""No number moves by less than this, nor by less than its own size."""


def replacement_literal(
    text: str,
    value: object,
    rng: random.Random,
    excluded_values: frozenset[Any] = frozenset(),
    seen: Sequence[tuple[str, object]] = (),
) -> str | None:
    """The source text of another constant than `value`, written `text`; None where there is no good one.

    `excluded_values` are values that stand beside it: the new one equals none of them, so that order and repetition do
    not matter to the difference. `seen` are constants of the same file: one of those looks like what people write here,
    so it is mostly taken where it differs enough.
    """
    alike = [other for other, held in seen if _could_stand_for(value, held)]
    for _ in range(20):
        new = rng.choice(alike) if alike and rng.random() < _REUSE_PROBABILITY else _other(text, value, rng)
        if new is None:
            return None
        parsed = constant_value(parse_expression(new))
        if type(parsed) is type(value) and normalize_value(parsed) not in {
            normalize_value(value),
            *map(normalize_value, excluded_values),
        }:
            return new
    return None


def near_literal(text: str, value: object, rng: random.Random, excluded_values: frozenset[Any]) -> str | None:
    """A constant next to this one, for a value that is part of a larger one: a whole number moves by one, and of a text
    with several lines only the first number does. Code that asks whether an answer could be right takes it for one."""
    if isinstance(value, int) and not isinstance(value, bool) and text.isdigit():
        near = [number for number in (value - 1, value + 1) if number > 1 and number not in excluded_values]
        return str(rng.choice(near)) if near else None
    if isinstance(value, str) and "\n" in value:
        words = [span for first, last, raw in string_bodies(text) for span in _words(text, first, last, raw)]
        number = next((span for span in words if text[slice(*span)].isdigit() and text[span[0]] != "0"), None)
        if number is not None:
            old = int(text[slice(*number)])
            new = text[: number[0]] + str(old - 1 if old > 1 else old + 1) + text[number[1] :]
            parsed = constant_value(parse_expression(new))
            return new if isinstance(parsed, str) and parsed not in excluded_values else None
    return None


def _could_stand_for(value: object, other: object) -> bool:
    """Whether another constant is of the same kind and size, and unlike enough for any sane equality."""
    if type(value) is not type(other) or isinstance(value, bool):
        return False
    if isinstance(value, int) and isinstance(other, int):
        return abs(other - value) >= max(2, abs(value)) and abs(other) <= 100 * max(1, abs(value))
    if isinstance(value, str) and isinstance(other, str):
        mine, its = str(normalize_value(value)), str(normalize_value(other))
        return bool(mine and its) and mine not in its and its not in mine and len(mine) <= 3 * len(its) <= 9 * len(mine)
    return False


def _other(text: str, value: object, rng: random.Random) -> str | None:
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int):
        return _other_int(text, value, rng)
    if isinstance(value, float):
        return _other_float(value, rng)
    if isinstance(value, complex):
        return f"{_other_int('', int(value.imag), rng)}j"
    if isinstance(value, str | bytes):
        return _other_text(text, rng)
    return None


def normalize_value(value: object) -> object:
    """A value as the most lenient of equalities sees it."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, str):
        return "".join(value.casefold().split())
    return value


def _other_int(text: str, value: int, rng: random.Random) -> str:
    size = 10 ** (len(str(abs(value))) - 1)
    new = abs(value) + rng.randint(2, 8) * size + (rng.randint(0, 9) * size // 10)
    new = max(new, 2 * abs(value) + 1)
    if text[:2].lower() == "0x":
        return f"{text[:2]}{new:x}"
    if text[:2].lower() in {"0b", "0o"}:
        return f"{new:#{text[1].lower()}}"
    return str(new)


def _other_float(value: float, rng: random.Random) -> str | None:
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124
        return None
    if abs(value) < MIN_CHANGE:
        return repr(round(value + rng.choice([1.5, 2.0, 3.0, 5.0]), 12))
    digits = min(max(len(repr(value).partition("e")[0].replace(".", "").strip("0")), 2), 15)
    new = float(f"{value * rng.choice([3, 4, 5]):.{digits}g}")
    return repr(new) if abs(new) != float("inf") else repr(float(f"{value / 3:.{digits}g}"))


def _other_text(text: str, rng: random.Random) -> str | None:
    """Change letters and digits of a string literal, all its pieces and their layout kept."""
    words = [(start, end) for first, last, raw in string_bodies(text) for start, end in _words(text, first, last, raw)]
    if not words:
        spans = list(string_bodies(text))
        if not spans:
            return None
        _, last, _ = spans[-1]
        return text[:last] + rng.choice(["a", "no", "item", "other"]) + text[last:]
    indices = {0, len(words) - 1, rng.randrange(len(words))}
    for index in sorted(indices, reverse=True):
        start, end = words[index]
        text = text[:start] + _other_word(text[start:end], rng) + text[end:]
    return text


def string_bodies(text: str) -> Iterator[tuple[int, int, bool]]:
    """The bodies of the strings that a literal is written with, and whether each is raw."""
    position = 0
    while position < len(text):
        opening = _OPENING.match(text, position)
        if text[position] == "#":
            position = len(text) if text.find("\n", position) < 0 else text.find("\n", position)
        elif opening:
            quote = opening[2]
            end = opening.end()
            while not text.startswith(quote, end):
                end += 2 if text[end] == "\\" else 1
            yield opening.end(), end, "r" in opening[1].lower()
            position = end + len(quote)
        else:
            position += 1


def _words(text: str, first: int, last: int, raw: bool) -> Iterator[tuple[int, int]]:
    position = first
    while position < last:
        word = _WORD.match(text, position, last)
        match = word or (None if raw else _ESCAPE.match(text, position, last))
        if word:
            yield word.span()
        position = match.end() if match else position + 1


def _other_word(word: str, rng: random.Random) -> str:
    if word.isdigit():
        position = len(word) - 1 if word[0] == "0" else 0
        return word[:position] + _swap(word[position], "123456789", rng) + word[position + 1 :]
    vowels = [position for position, letter in enumerate(word) if letter.lower() in _VOWELS]
    position = rng.choice(vowels or range(len(word)))
    letters = _VOWELS if vowels else _CONSONANTS
    new = _swap(word[position].lower(), letters, rng)
    return word[:position] + (new.upper() if word[position].isupper() else new) + word[position + 1 :]


def _swap(old: str, letters: str, rng: random.Random) -> str:
    return rng.choice([letter for letter in letters if letter != old])


def replacement_pattern(text: str, value: object, rng: random.Random) -> str | None:
    """Another regular expression, such that no text that is not made for it matches both; None if that is not certain.

    Only patterns that are plain text but for escapes, anchors and dots: there, every word has to be in the message.
    """
    if not isinstance(value, str):
        return None
    plain = re.sub(r"\\[^A-Za-z0-9]|\.[*+]?|[\^$]", " ", value)
    if re.search(r"[\\|?*+\[\](){}]", plain) or max(map(len, re.findall(r"[A-Za-z]+", plain)), default=0) < 4:
        return None
    words = [match.span() for first, last, _ in string_bodies(text) for match in _WORD.finditer(text, first, last)]
    for start, end in reversed(words):
        if text[start - 1] != "\\" and end - start > 3:
            text = text[:start] + _other_word(text[start:end], rng) + text[end:]
    parsed = constant_value(parse_expression(text))
    return text if isinstance(parsed, str) and normalize_value(parsed) != normalize_value(value) else None
