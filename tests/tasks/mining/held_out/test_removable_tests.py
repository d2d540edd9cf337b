"""What can be taken out of a suite; the ids are those that pytest itself gives."""

from gametape.tasks.mining.held_out.removable_tests import RemovableTests, TestSuite, read_test_suite
from tests.tasks.mining.collecting import suite_of


def hidden_with(suite: TestSuite, test: str) -> list[set[str]]:
    """What goes with a test, by each unit it is in, the smallest first."""
    return sorted(({*unit.ids} for unit in suite.units if test in unit.ids), key=lambda ids: (len(ids), sorted(ids)))


def test_a_function_is_a_unit() -> None:
    suite = suite_of({"test_a.py": "def test_a(): pass\ndef test_b(): pass\n"})
    assert [unit.ids for unit in suite.units] == [{"test_a.py::test_a"}, {"test_a.py::test_b"}]


def test_an_inherited_test_goes_from_all_classes_or_with_one() -> None:
    source = """
class Common:
    def test_a(self): pass
    def test_b(self): pass

class TestOne(Common): pass
class TestTwo(Common): pass
"""
    suite = suite_of({"test_a.py": source})
    one, two = "test_a.py::TestOne", "test_a.py::TestTwo"
    assert hidden_with(suite, f"{one}::test_a") == [
        {f"{one}::test_a", f"{one}::test_b"},
        {f"{one}::test_a", f"{two}::test_a"},
    ]


def test_what_a_test_overrides_goes_with_it() -> None:
    source = """
class TestOne:
    def test_a(self): pass

class TestTwo(TestOne):
    def test_a(self): assert 1
    def test_b(self): pass
"""
    suite = suite_of({"test_a.py": source})
    both = {"test_a.py::TestOne::test_a", "test_a.py::TestTwo::test_a"}
    assert both in hidden_with(suite, "test_a.py::TestTwo::test_a")
    assert {"test_a.py::TestTwo::test_a"} not in hidden_with(suite, "test_a.py::TestTwo::test_a")


def test_tests_are_inherited_across_files() -> None:
    files = {
        "common.py": "class Common:\n    def test_a(self): pass\n    def test_b(self): pass\n",
        "test_a.py": "from common import Common\nclass TestA(Common): pass\n",
        "test_b.py": "import common\nclass TestB(common.Common): pass\n",
    }
    suite = suite_of(files)
    assert {"test_a.py::TestA::test_a", "test_b.py::TestB::test_a"} in hidden_with(suite, "test_a.py::TestA::test_a")
    assert {f"test_a.py::TestA::test_{name}" for name in "ab"} in hidden_with(suite, "test_a.py::TestA::test_a")


def test_what_others_use_stays() -> None:
    source = """
def test_a(): return 1
def test_b(): assert test_a() == 1
class TestC:
    def test_c(self): pass
def test_d(): TestC().test_c()
"""
    suite = suite_of({"test_a.py": source})
    for name in ("test_a", "TestC::test_c"):
        assert hidden_with(suite, f"test_a.py::{name}") == [{*suite.ids}]
    assert {"test_a.py::test_b"} in hidden_with(suite, "test_a.py::test_b")


def test_what_only_a_program_uses_can_go() -> None:
    source = """
class Common:
    def test_a(self): pass
class TestA(Common): pass
class TestB(Common): pass
if __name__ == "__main__":
    print(TestA, TestB)
"""
    suite = suite_of({"test_a.py": source})
    assert hidden_with(suite, "test_a.py::TestA::test_a")[0] == {"test_a.py::TestA::test_a"}


def test_methods_of_classes_that_are_made_go_by_their_name() -> None:
    source = """
def make(name):
    class Made:
        def test_a(self): pass
        def test_b(self): pass
    globals()[name] = Made
    Made.__name__ = name
make("TestOne")
make("TestTwo")
"""
    suite = suite_of({"test_a.py": source, "test_b.py": "from test_a import *\n"})
    where = [(file, name) for file in ("test_a.py", "test_b.py") for name in ("TestOne", "TestTwo")]
    assert {f"{file}::{name}::test_a" for file, name in where} in hidden_with(suite, "test_a.py::TestOne::test_a")


def test_a_file_is_a_unit_where_nothing_in_it_is() -> None:
    source = "import pytest\nCASES = [n for n in (1, 2)]\ntest_a = lambda: None\n"
    suite = suite_of({"test_a.py": source, "test_b.py": "def test_b(): pass\n"})
    assert hidden_with(suite, "test_a.py::test_a") == [{"test_a.py::test_a"}]
    needed = suite_of({"test_a.py": source, "test_b.py": "from test_a import CASES\ndef test_b(): pass\n"})
    assert hidden_with(needed, "test_a.py::test_a") == []


def rows(source: str, test: str = "test_a") -> list[set[str]]:
    """The units inside the tests of one function, by the parameters of their ids."""
    suite = suite_of({"test_a.py": f"import pytest\n{source}"})
    cut = [unit for unit in suite.units if any(each.row is not None for each in unit.cuts)]
    return [{test.partition("[")[2][:-1] for test in unit.ids} for unit in cut]


def test_rows_are_units() -> None:
    assert rows('@pytest.mark.parametrize("n", [1, "b", None, b"\\x01"])\ndef test_a(n): pass') == [
        {"1"}, {"b"}, {"None"}, {"\\x01"},
    ]  # fmt: skip


def test_rows_that_are_named_by_their_place_are_units() -> None:
    source = '@pytest.mark.parametrize("n, m", [([], 1), ({}, 1), (object(), 2)])\ndef test_a(n, m): pass'
    assert rows(source) == [{"n0-1"}, {"n1-1"}, {"n2-2"}]


def test_rows_with_the_same_value_are_units() -> None:
    assert rows('@pytest.mark.parametrize("n", ["a", "a", ""])\ndef test_a(n): pass') == [{"a0"}, {"a1"}, {""}]


def test_rows_of_stacked_tables_cross() -> None:
    source = """
@pytest.mark.parametrize("a", [1, 2])
@pytest.mark.parametrize("b", [object, int, 3])
def test_a(a, b): pass
"""
    found = rows(source)
    assert {"object-1", "object-2"} in found
    assert {"object-1", "int-1", "3-1"} in found
    assert len(found) == 5


def test_rows_with_ids_of_their_own() -> None:
    source = """
@pytest.mark.parametrize("a", [1, pytest.param(2, id="two"), pytest.param(3, marks=pytest.mark.skip)])
@pytest.mark.parametrize("b", [[], []], ids=["x", "y"])
def test_a(a, b): pass
"""
    found = rows(source)
    assert {"x-two", "y-two"} in found
    assert {"y-1", "y-two", "y-3"} in found


def test_a_constant_with_no_other_purpose_is_a_table() -> None:
    source = """
CASES = [1, 2]
@pytest.mark.parametrize("a", CASES)
def test_a(a): pass
@pytest.mark.parametrize("b", CASES)
def test_b(b): pass
"""
    suite = suite_of({"test_a.py": f"import pytest\n{source}"})
    assert {"test_a.py::test_a[1]", "test_a.py::test_b[1]"} in hidden_with(suite, "test_a.py::test_a[1]")
    assert rows(f"{source}def test_c(): assert len(CASES) == 2") == []
    assert rows(f"{source}CASES += [3]") == []


def test_a_constant_may_stand_in_the_class_or_in_another_file() -> None:
    inside = """
class TestA:
    cases = (1, 2)
    @pytest.mark.parametrize("a", cases)
    def test_a(self, a): pass
"""
    assert rows(inside) == [{"1"}, {"2"}]
    use = "import pytest\nfrom cases import CASES\n@pytest.mark.parametrize('a', CASES)\ndef test_a(a): pass\n"
    suite = suite_of({"cases.py": "CASES = [1, 2]\n", "test_a.py": use, "test_b.py": use})
    assert {"test_a.py::test_a[1]", "test_b.py::test_a[1]"} in hidden_with(suite, "test_a.py::test_a[1]")


def test_parameters_of_fixtures_are_rows_but_for_the_first() -> None:
    conftest = """
import pytest
@pytest.fixture(params=["memory", "disk"])
def kind(request): return request.param
@pytest.fixture
def store(kind): return kind
"""
    suite = suite_of({"conftest.py": conftest, "test_a.py": "def test_a(store): pass\ndef test_b(kind): pass\n"})
    assert {"test_a.py::test_a[disk]", "test_a.py::test_b[disk]"} in hidden_with(suite, "test_a.py::test_a[disk]")
    assert len(hidden_with(suite, "test_a.py::test_a[memory]")) == 1


def test_what_cannot_be_read_is_left_alone() -> None:
    assert rows('@pytest.mark.parametrize("n", [*"ab", 1])\ndef test_a(n): pass') == []
    assert rows('@pytest.mark.parametrize("n", list("ab"))\ndef test_a(n): pass') == []
    assert rows('@pytest.mark.parametrize("n", [1], **{})\ndef test_a(n): pass') == []


def test_files_that_are_no_python_text() -> None:
    suite = read_test_suite(
        {"test_a.py": b"\xff", "test_b.py": b"def"}, ["test_a.py::test_a", "test_b.py::test_b", "c::c"]
    )
    assert [unit.ids for unit in suite.units] == [{"test_a.py::test_a"}, {"test_b.py::test_b"}]
    assert all(isinstance(unit, RemovableTests) for unit in suite.units)
