import pytest

from templates import render


def test_true():
    assert render("a{% if x %}b{% end %}c", {"x": 1}) == "abc"


def test_false():
    assert render("a{% if x %}b{% end %}c", {"x": 0}) == "ac"


def test_else():
    assert render("{% if x %}yes{% else %}no{% end %}", {"x": ""}) == "no"


def test_missing_is_false():
    assert render("{% if x.y %}yes{% else %}no{% end %}", {}) == "no"


def test_no_end():
    with pytest.raises(ValueError):
        render("{% if x %}", {"x": 1})
