"""Katas over text."""

from random import Random

from gametape.tasks.katas.kata import Arguments, KataTemplate

_VOCABULARY = """
apple banana basket bridge butter candle castle cherry circle coffee copper cotton desert dog dragon elephant engine
feather flower forest garden hammer harbor honey house island jacket kettle ladder lantern lemon marble meadow mirror
mountain needle ocean orange pencil pepper pillow planet pocket queen rabbit river rocket saddle silver summer tiger
tunnel umbrella velvet violin wagon window winter yellow zebra
"""
WORDS = _VOCABULARY.split()
_LETTERS = "abcdeghilmnoprstuw"


def _word(rng: Random) -> Arguments:
    return (rng.choice(WORDS),)


def _phrase(rng: Random) -> Arguments:
    return (" ".join(rng.sample(WORDS, rng.randint(1, 5))),)


def count(rng: Random) -> KataTemplate:
    letter = rng.choice(_LETTERS)
    does = f"returns how many times the letter '{letter}' occurs in the text"
    return KataTemplate(f"count_{letter}", ("text",), does, f"text.count({letter!r})", _phrase, [("",), (letter * 3,)])


def first(rng: Random) -> KataTemplate:
    n = rng.randint(2, 6)
    does = f"returns the first {n} characters of the text"
    return KataTemplate(f"first_{n}", ("text",), does, f"text[:{n}]", _phrase, [("ab",), ("",)])


def last(rng: Random) -> KataTemplate:
    n = rng.randint(2, 6)
    does = f"returns the last {n} characters of the text"
    return KataTemplate(f"last_{n}", ("text",), does, f"text[-{n}:]", _phrase, [("ab",), ("",)])


def repeat(rng: Random) -> KataTemplate:
    n = rng.randint(2, 9)
    return KataTemplate(f"repeat_{n}", ("text",), f"returns the text repeated {n} times", f"text * {n}", _word, [("",)])


def loud(rng: Random) -> KataTemplate:
    word = rng.choice(WORDS)
    does = f"returns the text in upper case followed by '{word}'"
    return KataTemplate(f"upper_{word}", ("text",), does, f"text.upper() + {word!r}", _phrase, [("",)])


def before(rng: Random) -> KataTemplate:
    word = rng.choice(WORDS)
    does = f"returns '{word}: ' followed by the text"
    return KataTemplate(f"label_{word}", ("text",), does, f"{word + ': '!r} + text", _phrase, [("",)])


def swapped(rng: Random) -> KataTemplate:
    old, new = rng.sample(_LETTERS, 2)
    does = f"returns the text with every '{old}' replaced by '{new}'"
    tried = [("",), (old * 2 + new,)]
    return KataTemplate(f"replace_{old}_{new}", ("text",), does, f"text.replace({old!r}, {new!r})", _phrase, tried)


def without(rng: Random) -> KataTemplate:
    letter = rng.choice(_LETTERS)
    does = f"returns the text without the letter '{letter}'"
    tried = [("",), (letter * 3,)]
    return KataTemplate(f"without_{letter}", ("text",), does, f"text.replace({letter!r}, '')", _phrase, tried)


def longer(rng: Random) -> KataTemplate:
    n = rng.randint(4, 15)
    does = f"returns True if the text has more than {n} characters, and False if it has not"
    tried = [("a" * n,), ("a" * (n + 1),), ("",)]
    return KataTemplate(f"is_longer_than_{n}", ("text",), does, f"len(text) > {n}", _phrase, tried)


def begins(rng: Random) -> KataTemplate:
    letter = rng.choice(_LETTERS)
    does = f"returns True if the text starts with '{letter}', and False if it does not"
    tried = [("",), (letter,), (f"{letter}x y",), (f"x{letter}",)]
    return KataTemplate(f"starts_with_{letter}", ("text",), does, f"text.startswith({letter!r})", _phrase, tried)


def joined(rng: Random) -> KataTemplate:
    sign = rng.choice("-_+/.:;")
    name = {"-": "dash", "_": "line", "+": "plus", "/": "slash", ".": "dot", ":": "colon", ";": "semicolon"}[sign]
    does = f"splits the text into words and returns them joined with '{sign}'"
    return KataTemplate(f"join_{name}", ("text",), does, f"{sign!r}.join(text.split())", _phrase, [("",)])


TEMPLATES = (count, first, last, repeat, loud, before, swapped, without, longer, begins, joined)
