"""Visible tests whose definitions lie in a base: edits there are seen, additions are work."""

import pytest

from gametape.core.task import Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify.integrity import find_flags
from gametape.verify.submission import Submission

SHARED = b"""
import unittest


class Mixin:
    kind = dict

    def make(self):
        return self.kind(a=1)

    def test_size(self):
        self.assertEqual(len(self.make()), 1)

    def test_not_shown(self):
        pass


class DictTests(unittest.TestCase, Mixin):
    pass


class Middle(Mixin):
    pass


class OtherTests(Middle, unittest.TestCase):
    kind = __import__("shop").Box
"""
BASES = b"""
class Deep:
    def test_deep(self):
        assert True is True


def test_of_its_own():
    pass
"""
FAR = b"""
from . import bases
from .bases import Deep as Base


class TestFar(Base):
    pass


class TestNear(bases.Deep):
    pass
"""
MADE = b"""
class TestMade:
    rows = [1, 2]

    def check(self, row):
        assert row


for row in TestMade.rows:
    setattr(TestMade, f"test_row_{row}", lambda self: self.check(row))
"""
START = {
    "shop.py": b"class Box(dict): pass\n",
    "test_shop.py": SHARED,
    "tests/__init__.py": b"",
    "tests/bases.py": BASES,
    "tests/test_far.py": FAR,
    "tests/test_made.py": MADE,
}
VISIBLE = [
    "test_shop.py::DictTests::test_size",
    "test_shop.py::OtherTests::test_size",
    "tests/bases.py::test_of_its_own",
    "tests/test_far.py::TestFar::test_deep",
    "tests/test_far.py::TestNear::test_deep",
    "tests/test_made.py::TestMade::test_row_1",
]


def rules(files: dict[str, bytes | None]) -> set[str]:
    task = Task(
        name="inherited",
        mode="shared",
        instruction="Write Box.",
        source_paths=["shop.py"],
        test_paths=["tests", "test_shop.py"],
        tests=TaskTests(fail_to_pass=VISIBLE, pass_to_pass=[]),
    )
    subject = LoadedTask(task, SourceTree(START), SourceTree({}), SourceTree(START))
    whole = {path: content for path, content in {**START, **files}.items() if content is not None}
    return {
        flag.rule
        for flag in find_flags(
            Submission(subject, SourceTree({"shop.py": START["shop.py"]}), SourceTree(whole), {}), []
        )
    }


@pytest.mark.parametrize(
    ("rule", "path", "old", "new"),
    [
        ("tests.changed", "test_shop.py", b"len(self.make()), 1", b"1, 1"),
        ("tests.changed", "test_shop.py", b"self.kind(a=1)", b"[1]"),
        ("tests.changed", "test_shop.py", b"class Middle(Mixin)", b"class Middle"),
        ("tests.changed", "test_shop.py", b"class Middle(Mixin):", b"class Middle(Mixin):\n    test_size = None\n"),
        ("tests.removed", "test_shop.py", b"def test_size", b"def check_size"),
        ("tests.removed", "test_shop.py", b"class DictTests", b"del Mixin.test_size\n\n\nclass DictTests"),
        ("tests.switched-off", "test_shop.py", b"    kind = dict", b"    __test__ = False\n    kind = dict"),
        ("tests.changed", "tests/bases.py", b"True is True", b"True"),
        ("tests.removed", "tests/bases.py", b"def test_deep", b"def check_deep"),
        ("tests.changed", "tests/test_made.py", b"assert row", b"pass"),
        ("tests.changed", "tests/test_made.py", b"[1, 2]", b"[]"),
    ],
)
def test_what_is_done_to_a_base_is_done_to_its_tests(rule: str, path: str, old: bytes, new: bytes) -> None:
    assert old in START[path]
    assert rule in rules({path: START[path].replace(old, new)})


def test_a_base_of_another_file_may_not_be_removed() -> None:
    assert "tests.removed" in rules({"tests/bases.py": None})


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("test_shop.py", b"class Middle(Mixin):", b"class Middle(Mixin):\n    def test_more(self): pass\n"),
        (
            "test_shop.py",
            b"class Middle",
            b"class More(Mixin, unittest.TestCase):\n    kind = list\n\n\nclass Middle",
        ),
        ("test_shop.py", b"return self.kind(a=1)", b"return self.kind(\n            a=1)  # one"),
        ("tests/bases.py", b"class Deep:", b"class Deep:\n    def test_more(self): pass\n"),
        ("tests/test_far.py", b"class TestNear", b"class TestThird(Base):\n    pass\n\n\nclass TestNear"),
        ("tests/test_made.py", b"class TestMade", b"def test_plain():\n    pass\n\n\nclass TestMade"),
    ],
)
def test_additions_beside_inherited_tests_are_work(path: str, old: bytes, new: bytes) -> None:
    assert old in START[path]
    assert rules({path: START[path].replace(old, new)}) == set()
