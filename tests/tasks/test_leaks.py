import pytest

from gametape.core.task import TaskTests
from gametape.tasks.leaks import leaks
from gametape.verify.tree import Tree


def found(test: str, start: str) -> list[tuple[str, str]]:
    tests = TaskTests(fail_to_pass=["t.py::test_shown"], pass_to_pass=[], held_out=[test])
    return list(leaks(tests, Tree({"t.py": start.encode()}), Tree({"t.py": b"pristine"})))


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
    suite = Tree({"t.py": b"shown", "h.py": b"hidden"})
    assert list(leaks(tests, Tree({"t.py": b"shown", "docs/x.md": b"hidden"}), suite)) == [("docs/x.md", "all of h.py")]
