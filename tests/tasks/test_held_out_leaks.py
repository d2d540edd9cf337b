import pytest

from gametape.core.task import TaskTests
from gametape.record.source_tree import SourceTree
from gametape.tasks.held_out_leaks import find_held_out_leaks


def found(test: str, start: str) -> list[tuple[str, str]]:
    tests = TaskTests(fail_to_pass=["t.py::test_shown"], pass_to_pass=[], held_out=[test])
    return list(find_held_out_leaks(tests, SourceTree({"t.py": start.encode()}), SourceTree({"t.py": b"pristine"})))


@pytest.mark.parametrize(
    ("test", "start"),
    [
        ("t.py::test_a", "def test_a(): pass"),
        ("t.py::test_a", "async def test_a(): pass"),
        ("t.py::test_a[1-2]", "@mark(1)\ndef test_a(x): pass"),
        ("t.py::test_a", "if True:\n    def test_a(): pass"),
        ("t.py::test_a", "try:\n    import x\nfinally:\n    def test_a(): pass"),
        ("t.py::A::test_a", "class A:\n    def test_a(self): pass"),
        ("t.py::A::B::test_a", "class A:\n    class B:\n        def test_a(self): pass"),
        ("t.py::A::test_a", "class Base:\n    def test_a(self): pass\nclass A(Base):\n    pass"),
        ("t.py::A::test_a", "class A(A):\n    pass\nclass A:\n    def test_a(self): pass"),
    ],
)
def test_a_test_that_can_be_read_is_found(test: str, start: str) -> None:
    assert found(test, start) == [("t.py", test)]


@pytest.mark.parametrize(
    ("test", "start"),
    [
        ("t.py::test_a", "def test_b(): pass"),
        ("t.py::test_a", "class A:\n    def test_a(self): pass"),
        ("t.py::A::test_a", "class B:\n    def test_a(self): pass"),
        ("t.py::A::test_a", "class A(B):\n    pass\nclass B(A):\n    pass"),
        ("t.py::test_a", "test_a = 1"),
        ("t.py::test_a", "this is not Python, def test_a():"),
        ("t.py::test_a", ""),
    ],
)
def test_other_tests_are_not(test: str, start: str) -> None:
    assert found(test, start) == []


def test_a_file_of_held_out_tests_is_found_under_any_name() -> None:
    tests = TaskTests(fail_to_pass=["t.py::test_shown"], pass_to_pass=[], held_out=["h.py::test_a"])
    suite = SourceTree({"t.py": b"shown", "h.py": b"hidden"})
    assert list(find_held_out_leaks(tests, SourceTree({"t.py": b"shown", "docs/x.md": b"hidden"}), suite)) == [
        ("docs/x.md", "all of h.py")
    ]


TABLE = "import pytest\n@pytest.mark.parametrize('a', {})\ndef test_a(a): pass\n"
CONSTANT = "import pytest\nCASES = {}\n@pytest.mark.parametrize('a', CASES)\ndef test_a(a): pass\n"
STACKED = "import pytest\n@pytest.mark.parametrize('b', [7, 8])\n" + TABLE.partition("\n")[2]


def found_cases(shown: list[str], held_out: list[str], start: str, suite: str, **helpers: str) -> list[str]:
    tests = TaskTests(
        fail_to_pass=[f"t.py::{test}" for test in shown],
        pass_to_pass=[],
        held_out=[f"t.py::{test}" for test in held_out],
    )
    around = {f"{name}.py": text.encode() for name, text in helpers.items()}
    trees = [SourceTree({"t.py": text.encode(), **around}) for text in (start, suite)]
    return [what.removeprefix("t.py::") for _, what in find_held_out_leaks(tests, *trees)]


@pytest.mark.parametrize("form", [TABLE, CONSTANT, TABLE.replace("'a', {}", "'a', {}, ids=str")])
def test_cases_may_be_held_out_where_the_rows_are_gone(form: str) -> None:
    shown, held_out = ["test_a[1]", "test_a[2]"], ["test_a[3]", "test_a[4]"]
    suite = form.format("[1, 2, 3, 4]")
    assert found_cases(shown, held_out, form.format("[1, 2]"), suite) == []
    assert found_cases(shown, held_out, suite, suite) == held_out
    assert found_cases(shown, held_out, form.format("[1, 2, 3]"), suite) == held_out
    assert found_cases(shown, held_out, form.format("[1, 2, 5]"), suite) == held_out
    assert found_cases(shown, held_out, form.format("[*range(1, 3)]"), suite) == held_out
    assert found_cases(["test_b"], held_out, form.format("[1, 2]"), suite) == held_out


def test_rows_of_one_table_of_several() -> None:
    shown, held_out = ["test_a[1-7]", "test_a[1-8]"], ["test_a[2-7]", "test_a[2-8]"]
    suite = STACKED.format("[1, 2]")
    assert found_cases(shown, held_out, STACKED.format("[1]"), suite) == []
    assert found_cases(shown, held_out, suite.replace("[7, 8]", "[7]"), suite) == []
    assert found_cases(shown, [*held_out, "test_a[3-7]"], STACKED.format("[1]"), suite) != []


def test_parameters_of_fixtures() -> None:
    suite = "import pytest\n@pytest.fixture(params=['x', 'y'])\ndef a(): pass\ndef test_a(a): pass\n"
    assert found_cases(["test_a[x]"], ["test_a[y]"], suite.replace(", 'y'", ""), suite) == []
    assert found_cases(["test_a[x]"], ["test_a[y]"], suite, suite) == ["test_a[y]"]


def test_a_class_that_is_gone_has_no_inherited_tests() -> None:
    shared = "class Base:\n    def test_a(self): pass\n"
    suite = "from shared import Base\nclass A(Base):\n    pass\nclass B(Base):\n    pass\n"
    start = suite.replace("class B(Base):\n    pass\n", "")
    assert found_cases(["A::test_a"], ["B::test_a"], start, suite, shared=shared) == []
    assert found_cases(["A::test_a"], ["B::test_a"], suite, suite, shared=shared) == ["B::test_a"]


def test_any_encoding_can_be_read() -> None:
    for source in (b"\xef\xbb\xbfdef test_a(): pass", "# coding: latin-1\ndef test_a(): 'é'".encode("latin-1")):
        tests = TaskTests(fail_to_pass=["t.py::test_shown"], pass_to_pass=[], held_out=["t.py::test_a"])
        assert list(find_held_out_leaks(tests, SourceTree({"t.py": source}), SourceTree({"t.py": b""}))) == [
            ("t.py", "t.py::test_a")
        ]
