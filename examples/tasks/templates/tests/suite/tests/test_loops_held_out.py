import pytest

from templates import render


def test_the_outer_value_is_back():
    assert render("{{ x }}{% for x in xs %}{{ x }}{% end %}{{ x }}", {"x": "o", "xs": ["a", "b"]}) == "oabo"


def test_a_condition_in_a_loop():
    template = "{% for t in tasks %}{% if t.done %}x{% else %}{{ t.name }}{% end %} {% end %}"
    tasks = [{"name": "wash", "done": True}, {"name": "cook", "done": False}]
    assert render(template, {"tasks": tasks}) == "x cook "


def test_a_loop_in_a_loop():
    rows = [[1, 2], [], [3]]
    assert render("{% for r in rows %}{% for c in r %}{{ c }}{% end %};{% end %}", {"rows": rows}) == "12;;3;"


def test_an_else_of_a_loop():
    with pytest.raises(ValueError):
        render("{% for x in xs %}a{% else %}b{% end %}", {"xs": []})
