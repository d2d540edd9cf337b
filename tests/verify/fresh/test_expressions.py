"""A grammar of short expressions: which of them give an answer, and what they are as Python."""

from typing import Any

import pytest

from gametape.verify.fresh.expressions import evaluate, gives, right_expressions, source_of

_NAMES = {name: name for name in ("x", "y", "given", "waiting", "stack", "table")}


def _found(values: dict[str, Any], answer: Any) -> set[str]:
    return {source_of(expression, _NAMES) for expression in right_expressions(values, answer)}


@pytest.mark.parametrize(
    ("values", "answer", "expression"),
    [
        ({"x": [1, 5, 9]}, (1, 9), "(x[0], x[-1])"),
        ({"x": [1, 5, 9]}, (1, 9), "(min(x), max(x))"),
        ({"x": [3, 1, 2]}, [1, 2, 3], "sorted(x)"),
        ({"x": [3, 1, 1]}, [3, 1], "list(dict.fromkeys(x))"),
        ({"x": [1, 2, 4]}, [4, 2], "x[::-1][:2]"),
        ({"x": [("a", 3), ("b", 1)], "y": 1}, ["a"], "([part[0] for part in x])[:y]"),
        ({"x": "a b", "y": "-"}, "a-b", "y.join(x.split())"),
        ({"x": {"a": 4}, "y": "b"}, 4, "sum(x.values())"),
        ({"x": 7, "y": 5}, 6.0, "(x + y) / 2"),
        ({"given": ["a", "b"], "waiting": ["b"]}, "b", "waiting[0]"),
        ({"given": ["a", "b"], "stack": ["a"]}, "a", "stack[-1]"),
        ({"x": "a", "table": {"a": 1, "b": 2}}, 1, "table.get(x)"),
    ],
)
def test_an_expression_is_found(values: dict[str, Any], answer: Any, expression: str) -> None:
    assert expression in _found(values, answer)


def test_every_expression_that_is_found_gives_the_answer_and_is_python() -> None:
    values = {"x": [4, 2, 2], "y": 3}
    for answer in ([2, 2, 4], 8, (4, 2), "4", True, 2.0):
        for expression in right_expressions(values, answer):
            assert gives(expression, values, answer)
            assert eval(source_of(expression, _NAMES), {}, values) == answer


def test_work_is_not_found() -> None:
    assert not right_expressions({"x": "Salt & Pepper"}, "salt-and-pepper")
    assert not right_expressions({"x": [3, 8, 1, 7]}, [9, 64, 1, 49, 4])


def test_types_are_exact() -> None:
    assert "x" not in _found({"x": 1}, True)
    assert "x" not in _found({"x": [1]}, [True])


def test_large_numbers_take_no_room() -> None:
    assert not right_expressions({"x": 10**11, "y": "ab"}, "ab" * 50)
    with pytest.raises(OverflowError):
        evaluate(("list(range({0}))", "x"), {"x": 10**11})
    with pytest.raises(OverflowError):
        evaluate(("{0} * {1}", "x", "y"), {"x": "a", "y": 10**9})
