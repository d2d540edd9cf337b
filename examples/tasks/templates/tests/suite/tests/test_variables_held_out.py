import pytest

from templates import render


def test_several_variables_side_by_side():
    assert render("{{a}}{{ b }}-{{a}}", {"a": "x", "b": "y"}) == "xy-x"


def test_a_deep_path():
    assert render("<{{ a.b.c }}>", {"a": {"b": {"c": 7}}}) == "<7>"


def test_a_path_through_something_that_is_no_dictionary():
    with pytest.raises(ValueError, match="name.first"):
        render("{{ name.first }}", {"name": "Ada"})


def test_an_empty_tag():
    with pytest.raises(ValueError):
        render("{{ }}", {})
