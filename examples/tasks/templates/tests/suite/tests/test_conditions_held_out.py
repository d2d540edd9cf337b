import pytest

from templates import render

NESTED = "{% if a %}A{% if b %}B{% else %}-{% end %}{% else %}none{% end %}."


def test_nested():
    cases = [{"a": 1, "b": 1}, {"a": 1, "b": 0}, {"b": 1}]
    assert [render(NESTED, values) for values in cases] == ["AB.", "A-.", "none."]


def test_not():
    assert render("{% if not done %}{{ left }} left{% end %}", {"done": False, "left": 4}) == "4 left"


def test_the_other_part_is_not_looked_up():
    assert render("{% if x %}{{ missing }}{% else %}fine{% end %}", {}) == "fine"


def test_a_stray_end():
    with pytest.raises(ValueError):
        render("a{% end %}", {})


def test_an_unknown_tag():
    with pytest.raises(ValueError):
        render("{% while x %}{% end %}", {"x": 1})
