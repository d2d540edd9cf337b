import random

import pytest

from gametape.tasks.mining.held_out.removable_tests import TestSuite
from gametape.tasks.mining.held_out.trimmed_suite import trim_suite
from tests.tasks.mining.collecting import collected, suite_of


def without(suite: TestSuite, *tests: str) -> dict[str, bytes | None]:
    """What changes when the smallest units with these tests are taken out."""
    units = [min((unit for unit in suite.units if test in unit.ids), key=lambda unit: len(unit.ids)) for test in tests]
    return trim_suite(suite, {cut for unit in units for cut in unit.cuts})


def text_without(source: str, *tests: str) -> str:
    suite = suite_of({"test_a.py": source})
    found = without(suite, *(f"test_a.py::{test}" for test in tests))["test_a.py"]
    assert found is not None
    hidden = {f"test_a.py::{test}" for test in tests}
    assert collected({"test_a.py": found}) == [test for test in suite.ids if test not in hidden]
    return found.decode()


def test_a_function_goes_with_its_decorators_and_comments() -> None:
    source = '''"""Tests.

# not a comment
"""
import pytest

def test_a():
    pass  # keep


# about b
# and more
@pytest.mark.skip
def test_b():
    text = """
# no comment
"""
    # the end of b

    # truly


# about c
def test_c(): pass
'''
    expected = source[: source.index("\n\n# about b")] + source[source.index("\n\n# about c") :]
    assert text_without(source, "test_b") == expected


def test_a_class_goes_with_its_last_test() -> None:
    source = (
        "import unittest\n\nclass A(unittest.TestCase):\n    'a'\n    def test_a(self): pass\n\ndef test_b(): pass\n"
    )
    assert text_without(source, "A::test_a") == "import unittest\n\ndef test_b(): pass\n"


def test_a_class_that_others_need_stays() -> None:
    source = "class TestA:\n    def test_a(self): pass\n\nx = TestA\n\ndef test_b(): pass\n"
    assert text_without(source, "TestA::test_a") == "class TestA:\n    pass\n\nx = TestA\n\ndef test_b(): pass\n"


def test_a_class_with_inherited_tests_stays() -> None:
    source = """class Common:
    def test_b(self): pass
    def test_c(self): pass

class TestA(Common):
    def test_a(self): pass

class TestB(Common): pass
"""
    assert "class TestA(Common):\n    pass\n" in text_without(source, "TestA::test_a")


def test_a_class_goes_as_a_whole() -> None:
    source = (
        "class C:\n    def test_a(self): pass\nclass TestA(C): pass\n# b\nclass TestB(C):\n    x = 1\n\n    # end\n"
    )
    assert text_without(source, "TestB::test_a") == "class C:\n    def test_a(self): pass\nclass TestA(C): pass\n"


def test_blocks_are_never_left_empty() -> None:
    source = "if True:\n    def test_a(): pass\nelse:\n    def test_a(): 1\ndef test_b(): pass\n"
    assert text_without(source, "test_a") == "if True:\n    pass\nelse:\n    pass\ndef test_b(): pass\n"


def test_lines_end_as_they_did() -> None:
    source = (
        "class TestA:\r\n    x = 1\r\n\r\n    def test_a(self):\r\n        pass\r\n\r\n    def test_b(self): pass\r\n"
    )
    assert text_without(source, "TestA::test_a") == source.replace("    def test_a(self):\r\n        pass\r\n\r\n", "")


def test_two_neighbours_that_open_a_block_go_together() -> None:
    source = "class TestA:\n    def test_a(self): pass\n\n\n    def test_b(self): pass\n\n    def test_c(self): pass\n"
    assert text_without(source, "TestA::test_a", "TestA::test_b") == "class TestA:\n    def test_c(self): pass\n"


def test_a_row_goes_with_its_comments() -> None:
    source = """import pytest
@pytest.mark.parametrize("a", [  # cases
    1,  # one, first
    # two
    2,  # two, too
    3,  # three
    4  # four
    # four, again
])
def test_a(a): pass
"""
    found = text_without(source, "test_a[2]", "test_a[4]")
    assert found == source.replace("    # two\n    2,  # two, too\n", "").replace(
        "\n    4  # four\n    # four, again\n", "\n"
    )
    assert text_without(source, "test_a[1]") == source.replace("    1,  # one, first\n", "")


@pytest.mark.parametrize(
    ("table", "test", "expected"),
    [
        ("[1, 2, 3]", "1", "[2, 3]"),
        ("[1, 2, 3]", "2", "[1, 3]"),
        ("[1, 2, 3]", "3", "[1, 2,]"),
        ("(1, 2)", "1", "(2,)"),
        ("(1, (2))", "1", "((2),)"),
        ("(1, 2,)", "2", "(1,)"),
        ("[('a' # ,\n'b'), ('c')]", "ab", "[('c')]"),
        ("['é', 'b']", "b", "['é',]"),
    ],
)
def test_rows_on_one_line(table: str, test: str, expected: str) -> None:
    source = f"import pytest\n@pytest.mark.parametrize('a', {table})\ndef test_a(a): pass\n"
    assert text_without(source, f"test_a[{test}]") == source.replace(table, expected)


def test_rows_that_are_named_by_their_place_keep_their_names() -> None:
    source = "import pytest\n@pytest.mark.parametrize('a', [[], {}, ()])\ndef test_a(a): pass\n"
    assert text_without(source, "test_a[a1]") == source.replace("[[], {}, ()]", "[[], ()], ids=['a0', 'a2']")
    comma = "import pytest\n@pytest.mark.parametrize(\n    'a',\n    ['x', 'x', 'é', ''],\n)\ndef test_a(a): pass\n"
    assert "['x', 'é', ''],\nids=['x1', 'é', ''])" in text_without(comma, "test_a[x0]")


def test_names_that_are_given_go_with_their_rows() -> None:
    source = "import pytest\n@pytest.mark.parametrize('a', [[], {}], ids=['x', 'y'])\ndef test_a(a): pass\n"
    assert text_without(source, "test_a[x]") == source.replace("[[], {}], ids=['x', 'y']", "[{}], ids=['y']")
    made = source.replace("['x', 'y']", "lambda a: type(a).__name__")
    assert text_without(made, "test_a[list]") == source.replace("[[], {}], ids=['x', 'y']", "[{}], ids=['dict']")


def test_a_table_that_several_tests_share() -> None:
    source = """import pytest
CASES = [[], {}, ()]
@pytest.mark.parametrize("a", CASES)
def test_a(a): pass
@pytest.mark.parametrize("b", CASES)
def test_b(b): pass
"""
    found = text_without(source, "test_a[a0]", "test_b[b0]")
    assert "CASES = [{}, ()]" in found
    assert "\"a\", CASES, ids=['a1', 'a2'])" in found
    assert "\"b\", CASES, ids=['b1', 'b2'])" in found


def test_a_test_without_rows_goes() -> None:
    source = "import pytest\n\ndef test_b(): pass\n\n@pytest.mark.parametrize('a', [1, 2])\ndef test_a(a): pass\n"
    assert text_without(source, "test_a[1]", "test_a[2]") == "import pytest\n\ndef test_b(): pass\n"


def test_a_file_goes_with_its_last_test_unless_it_is_needed() -> None:
    files = {"test_a.py": "X = 1\ndef test_a(): pass\n", "test_b.py": "def test_b(): pass\n"}
    assert without(suite_of(files), "test_a.py::test_a") == {"test_a.py": None}
    files["test_b.py"] = "from test_a import X\n" + files["test_b.py"]
    assert without(suite_of(files), "test_a.py::test_a") == {"test_a.py": b"X = 1\n"}


MANY = '''
import unittest

import pytest

WORDS = (
    "a",  # first
    ("b"),
    # third
    "a",
    "c-d",
)


class Common:
    size: int

    @pytest.mark.parametrize("word", WORDS)
    @pytest.mark.parametrize("number", [{}, 1, pytest.param(2, id="two"), (3)])
    def test_product(self, word, number):
        """text"""

    def test_common(self): ...


class TestSmall(Common):
    size = 1

    class TestInner:
        @pytest.mark.parametrize("a, b", [(1, [1]), (2, [2]), pytest.param(3, [3])])
        def test_inner(self, a, b): ...


class TestLarge(Common):
    size = 2

    def test_common(self): ...


@pytest.fixture(params=[10, 20, 30])
def ten(request): ...


@pytest.fixture
def more(ten): ...


def test_fixture(more): ...


@pytest.mark.parametrize("x", [None, "x"])
def test_both(x, ten): ...


class Cases(unittest.TestCase):
    def setUp(self): ...

    def test_one(self): ...

    async def test_two(self): ...  # two
'''


def test_whatever_is_taken_out_the_rest_stays_as_it_was() -> None:
    suite = suite_of({"tests/test_many.py": MANY, "tests/test_one.py": "def test_one(): pass\n"})
    rng = random.Random(3)
    for share in (0.05, 0.1, 0.1, 0.2, 0.4, 0.7, 1.0):
        units = [unit for unit in suite.units if rng.random() < share]
        hidden = {test for unit in units for test in unit.ids}
        files = {**suite.files.sources, **trim_suite(suite, {cut for unit in units for cut in unit.cuts})}
        left = {path: content for path, content in files.items() if content is not None}
        assert collected(left) == [test for test in suite.ids if test not in hidden]
