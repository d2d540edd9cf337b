import pytest

from slugs import slugify, words


def test_words_are_split_at_white_space():
    assert words("one  two\tthree") == ["one", "two", "three"]


def test_no_words_in_an_empty_text():
    assert words("   ") == []


def test_spaces_become_hyphens():
    assert slugify("Hello World") == "hello-world"


def test_runs_of_punctuation_become_one_hyphen():
    assert slugify("Wait... what?! Really") == "wait-what-really"


def test_no_hyphen_at_the_ends():
    assert slugify("  -- A quiet place --  ") == "a-quiet-place"


def test_accents_are_dropped():
    assert slugify("Café Déjà Vu") == "cafe-deja-vu"


def test_an_ampersand_is_a_word():
    assert slugify("Salt & Pepper") == "salt-and-pepper"


def test_apostrophes_vanish():
    assert slugify("Don't Look") == "dont-look"


def test_whole_words_are_kept():
    assert slugify("the long and winding road", max_length=12) == "the-long-and"


def test_a_first_word_that_is_too_long_is_cut():
    assert slugify("Incomprehensible", max_length=5) == "incom"


def test_nothing_left_is_an_error():
    with pytest.raises(ValueError):
        slugify("?!")


def test_underscores_are_separators():
    assert slugify("snake_case_name") == "snake-case-name"


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_never_longer_than_the_limit(limit):
    assert len(slugify("some words here", max_length=limit)) <= limit


class TestErrors:
    def test_blank(self):
        with pytest.raises(ValueError):
            slugify("   ")
