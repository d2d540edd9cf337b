"""Which tests are known to cross: those that compare what a call returns with plain values."""

from gametape.desk.goals.apart_run import plain_functions
from gametape.record.source_tree import SourceTree

_TESTS = b"""\
import pytest
from shop import Cart, sort_in_place, total


def test_one():
    assert total([1]) == 1


@pytest.mark.parametrize("prices, expected", [([1], 1)])
def test_rows(prices, expected):
    result = total(prices)
    assert result == expected
    assert pytest.approx(1.5) == total([1.5])


def test_other_object():
    assert total([1]) == Cart()


def test_fixture(tmp_path):
    assert total([1]) == 1


def test_changed_argument():
    prices = [2, 1]
    sort_in_place(prices)
    assert prices == [1, 2]


def test_identity():
    assert total([1]) is total([1])


@slow
def test_decorated():
    assert total([1]) == 1
"""


def _plain(text: bytes, conftest: bytes = b"") -> set[str]:
    suite = SourceTree({"tests/test_a.py": text, "tests/conftest.py": conftest})
    return {name for _, name in plain_functions(suite, ["tests/test_a.py"])}


def test_only_plain_comparisons_count() -> None:
    assert _plain(_TESTS) == {"test_one", "test_rows"}


def test_a_file_that_prepares_more_has_none() -> None:
    assert _plain(_TESTS, b"@pytest.fixture(autouse=True)\ndef f(): ...\n") == set()
    assert _plain(b"import os\n\nos.environ['A'] = '1'\n" + _TESTS) == set()
