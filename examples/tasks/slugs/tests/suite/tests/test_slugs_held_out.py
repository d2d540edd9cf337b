import pytest

from slugs import slugify


def test_digits_stay():
    assert slugify("Top 10 Albums of 1999") == "top-10-albums-of-1999"


def test_other_accents_are_dropped():
    assert slugify("Über die Brücke, señor") == "uber-die-brucke-senor"


def test_an_ampersand_without_spaces_is_a_word():
    assert slugify("Rock&Roll") == "rock-and-roll"


def test_a_curly_apostrophe_vanishes():
    assert slugify("It’s a Dog’s Life") == "its-a-dogs-life"


def test_a_word_that_ends_exactly_at_the_limit_is_kept():
    assert slugify("alpha beta gamma", max_length=10) == "alpha-beta"


def test_one_character_less_drops_the_word():
    assert slugify("alpha beta gamma", max_length=9) == "alpha"


def test_a_limit_below_one_is_an_error():
    with pytest.raises(ValueError):
        slugify("fine", max_length=0)
