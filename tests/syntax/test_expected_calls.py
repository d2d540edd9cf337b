"""Calls that tests compare with constants."""

import ast

import pytest

from gametape.syntax.expected_calls import extract_expected_calls, extract_refused_calls, innermost_call


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("assert f(1, b=2) == 3", [("f", (1,), (("b", 2),), 3)]),
        ("assert 3 == m.f(1)", [("f", (1,), (), 3)]),
        ("assert f(1) == 1 and f(2) == 2", [("f", (1,), (), 1), ("f", (2,), (), 2)]),
        ("assert f('x')", [("f", ("x",), (), True)]),
        ("assert not f('x')", [("f", ("x",), (), False)]),
        ("assert f(2) == pytest.approx(1.5)", [("f", (2,), (), 1.5)]),
        ("x = [1]\n    assert f(x) == 'a' * 3", [("f", ([1],), (), "aaa")]),
        ("self.assertSetEqual(f(1), {1})", [("f", (1,), (), {1})]),
        ("assert f(unknown) == 1", []),
        ("assert f(1) != 1", []),
        ("assert f(**{'a': 1}) == 1", []),
    ],
)
def test_calls_of_a_test(body: str, expected: list[object]) -> None:
    calls = extract_expected_calls("t.py", f"def test_a():\n    {body}\n")
    assert [(call.function, call.args, call.kwargs, call.expected) for call in calls] == expected


def test_parameters_have_their_values() -> None:
    source = """
class TestA:
    @pytest.mark.parametrize("x, y", [(1, 2), pytest.param(3, 4, id="three")])
    @pytest.mark.parametrize("z", ["a"])
    def test_a(self, x, y, z):
        assert f(x, z) == y
"""
    calls = extract_expected_calls("t.py", source)
    assert [(call.args, call.expected, call.test) for call in calls] == [
        ((1, "a"), 2, "TestA::test_a"),
        ((3, "a"), 4, "TestA::test_a"),
    ]


def test_calls_that_must_raise() -> None:
    source = """
@pytest.mark.parametrize("text", ["a", "b"])
def test_a(text):
    with pytest.raises(Bad, match="no"):
        f(text)
    with pytest.raises(Bad):
        prepared = unknown()
        f(prepared)

def test_b(self):
    self.assertRaises(errors.Worse, f, 3, sign=True)
    f(4)
"""
    calls = extract_refused_calls("t.py", source)
    assert [(call.function, call.args, call.kwargs, call.expected) for call in calls] == [
        ("f", ("a",), (), "Bad"),
        ("f", ("b",), (), "Bad"),
        ("f", (3,), (("sign", True),), "Worse"),
    ]


@pytest.mark.parametrize("text", ["f(x)", "f(x).size", "f(x)[0].y", "list(f(x))", "len(f(x))"])
def test_the_innermost_call(text: str) -> None:
    assert ast.unparse(innermost_call(ast.parse(text, mode="eval").body)) == "f(x)"
