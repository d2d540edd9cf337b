"""One line of a failed test, whether it was run or replayed."""

import pytest

from gametape.verify.test_message import add_call, compared_values, summarize_message

LIVE = """def test_title():
>       assert slugify("a b") == "a-b"
E       AssertionError: assert 'a b' == 'a-b'
E         - a-b

tests/test_slugs.py:39: AssertionError"""


def test_values_of_a_comparison_are_read() -> None:
    assert compared_values(LIVE) == ("'a-b'", "'a b'")
    assert compared_values("E   ValueError: assert") is None


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (LIVE, "expected 'a-b', got 'a b'"),
        (add_call(LIVE, "slugify('a b'): expected 'a-b', got 'a b'"), "slugify('a b'): expected 'a-b', got 'a b'"),
        (add_call("E   KeyError: 1", "find(1): got KeyError: 1"), "find(1): got KeyError: 1"),
        ("E   Failed: DID NOT RAISE ValueError\n\nt.py:3: Failed", "Failed: DID NOT RAISE ValueError"),
        ("tests/test_slugs.py:39: AssertionError", "tests/test_slugs.py:39: AssertionError"),
        ("", ""),
    ],
)
def test_a_line_has_the_call_else_the_values_else_the_error(message: str, line: str) -> None:
    assert summarize_message(message) == line
