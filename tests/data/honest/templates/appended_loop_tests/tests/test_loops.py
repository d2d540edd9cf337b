import pytest

from templates import render


def test_items():
    assert render("{% for x in xs %}{{ x }},{% end %}", {"xs": [1, 2, 3]}) == "1,2,3,"


def test_items_that_are_dictionaries():
    users = [{"name": "Ada"}, {"name": "Alan"}]
    assert render("{% for u in users %}[{{ u.name }}]{% end %}", {"users": users}) == "[Ada][Alan]"


def test_no_list():
    with pytest.raises(ValueError, match="xs"):
        render("{% for x in xs %}{% end %}", {"xs": "text"})


def test_an_empty_list():
    assert render("[{% for x in xs %}{{ x }}{% end %}]", {"xs": []}) == "[]"


def test_a_missing_list():
    with pytest.raises(ValueError, match="nope"):
        render("{% for x in nope %}{% end %}", {})
