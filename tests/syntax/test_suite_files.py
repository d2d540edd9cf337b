"""Where the classes of tests and their bases are defined."""

import pytest

from gametape.syntax.suite_files import TestFiles

FILES = {
    "tests/__init__.py": b"",
    "tests/base.py": b"class Base:\n    def test_m(self): pass\nclass Outer:\n    class Inner:\n        pass\n",
    "tests/stars.py": b"from .base import *\n",
    "tests/unit/test_a.py": (
        b"import tests.base\nimport tests.base as short\nfrom tests import base\n"
        b"from tests.stars import Base as Renamed\n"
        b"class TestName(Renamed): pass\n"
        b"class TestModule(base.Base): pass\n"
        b"class TestAlias(short.Base): pass\n"
        b"class TestDotted(tests.base.Base): pass\n"
        b"class TestInner(base.Outer.Inner): pass\n"
        b"class TestMade(mixed(Renamed, 1)): pass\n"
        b"class TestGeneric(Renamed[int]): pass\n"
        b"if 1:\n    class TestGuarded(TestName): pass\n"
    ),
}


@pytest.mark.parametrize(
    ("owner", "bases"),
    [
        ("TestName", ["Base"]),
        ("TestModule", ["Base"]),
        ("TestAlias", ["Base"]),
        ("TestDotted", ["Base"]),
        ("TestInner", ["Outer::Inner", "Outer"]),
        ("TestMade", ["Base"]),
        ("TestGeneric", ["Base"]),
        ("TestGuarded", ["TestName", "Base"]),
    ],
)
def test_bases_are_followed_through_imports(owner: str, bases: list[str]) -> None:
    lineage = TestFiles(FILES).lineage("tests/unit/test_a.py", owner)
    assert [name for _, name, _ in lineage] == [owner, *bases]


def test_imports_in_a_circle_end() -> None:
    files = TestFiles({"a.py": b"from b import *\nclass A(B): pass\n", "b.py": b"from a import *\nclass B(A): pass\n"})
    assert [name for _, name, _ in files.lineage("a.py", "A")] == ["A", "B"]
