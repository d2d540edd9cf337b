"""What counts as a function that can be deleted, and where it lies."""

import pytest

from gametape.tasks.mining.functions import Function, functions_in


def _names(source: str) -> list[str]:
    return [one.qualname for one in functions_in("m.py", source)]


def test_a_function_is_a_place() -> None:
    source = "@a\n@b(\n  1)\ndef f(x,\n      y):\n    '''Says.'''\n    # why\n    @c\n    def g(): pass\n    return g\n"
    (found,) = functions_in("m.py", source)
    assert found == Function("m.py", 4, "f", 1, 8, 10)
    assert found.name == "m.py::f"
    assert str(found) == "m.py::f:4"


@pytest.mark.parametrize(
    "around",
    [
        "if a:\n{}",
        "if a:\n    pass\nelif b:\n    pass\nelse:\n{}",
        "try:\n{}\nexcept E:\n    pass",
        "try:\n    pass\nexcept E:\n{}",
        "try:\n    pass\nexcept* E:\n{}",
        "try:\n    pass\nfinally:\n{}",
        "with a:\n{}",
        "for a in b:\n{}",
        "match a:\n  case 1:\n{}",
    ],
)
def test_functions_under_statements_are_found(around: str) -> None:
    assert _names(around.format("    def f():\n        return 1")) == ["f"]


def test_functions_of_nested_classes_are_found_and_those_in_functions_are_not() -> None:
    source = "class A:\n  class B:\n    async def f(self):\n      def g():\n        return 1\n      return g\n"
    assert _names(source) == ["A.B.f"]


def test_definitions_for_type_checkers_never_run() -> None:
    source = "if TYPE_CHECKING:\n    def f():\n        return 1\nelse:\n    def g():\n        return 1\n"
    assert _names(source) == ["g"]
    assert _names(source.replace("TYPE", "typing.TYPE")) == ["g"]


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "...",
        "'''Says.'''",
        "'''Says.'''\n    pass",
        "'''Says.'''\n    ...",
        "return",
        "return None",
        "return NotImplemented",
        "raise NotImplementedError",
        "raise NotImplementedError('by others')",
    ],
)
def test_a_stub_has_nothing_to_delete(body: str) -> None:
    assert _names(f"def f():\n    {body}\n") == []


@pytest.mark.parametrize("body", ["return 0", "raise ValueError", "raise", "x = 1\n    return None", "yield"])
def test_little_is_not_nothing(body: str) -> None:
    assert _names(f"def f():\n    {body}\n") == ["f"]


def test_a_body_on_a_line_of_its_signature_cannot_be_told_from_it() -> None:
    assert _names("def f(): return 1\n") == []
    assert _names("def f(a,\n      b=c()): return 1\n") == []
    assert _names("def f(\n    a,\n): return 1\n") == ["f"]


def test_overloads_are_no_functions() -> None:
    assert _names("@overload\ndef f(a):\n    return 1\n@t.overload\ndef f(b):\n    return 1\n") == []


def test_a_mark_at_the_start_does_not_matter_and_what_is_not_python_has_none() -> None:
    assert _names("\ufeffdef f():\n    return 1\n") == ["f"]
    assert _names("def f(:\n") == []
    assert _names("x = '\0'") == []
