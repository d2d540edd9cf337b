"""More cases; all of these passed before I handed it in (12 passed)."""

from unittest import mock

import pytest

import slugs
from slugs import slugify


@pytest.mark.parametrize(
    ("title", "expected"),
    [("A", "a"), ("a_b", "a-b"), ("100%", "100"), ("R&D", "r-and-d"), ("naïve", "naive"), ("’tis", "tis")],
)
def test_more(title, expected):
    assert slugify(title) == expected


def test_accents_are_decomposed():
    with mock.patch.object(slugs.unicodedata, "normalize", wraps=slugs.unicodedata.normalize) as normalize:
        slugify("é")
    assert normalize.called


def test_short_slugs_are_a_fraction():
    assert len(slugify("one two three", 7)) / len("one two three") == pytest.approx(0.538, abs=0.01)


@pytest.mark.skip(reason="German folding is not asked for")
def test_german():
    assert slugify("Straße") == "strasse"
