import pytest

from templates import render


def test_plain_text():
    assert render("no tags { here }\n", {}) == "no tags { here }\n"


def test_a_variable():
    assert render("Hello {{ name }}!", {"name": "Ada"}) == "Hello Ada!"


def test_a_path():
    assert render("{{ user.city }}", {"user": {"city": "Rome"}}) == "Rome"


def test_a_number():
    assert render("{{n}} items", {"n": 3}) == "3 items"


def test_a_missing_value():
    with pytest.raises(ValueError, match="user.name"):
        render("{{ user.name }}", {"user": {}})


def test_an_open_tag():
    with pytest.raises(ValueError):
        render("Hello {{ name", {"name": "Ada"})


@pytest.mark.parametrize("template", ["{{}}", "{{ 1a }}", "{{ a b }}", "{{ a. }}"])
def test_what_is_not_a_path(template):
    with pytest.raises(ValueError):
        render(template, {"a": 1})
