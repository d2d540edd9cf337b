"""A small made-up task to hold snippets against."""

from gametape.core.task import Task, TaskTests
from gametape.core.verdict import Flag
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify.integrity import find_flags
from gametape.verify.submission import Submission
from gametape.verify.verifier_run import VerifierRun

TEST = b'''"""Tests of numbers and titles."""

import pytest

from shop.core import total, slug, roman

RATE = 3


@pytest.fixture
def basket():
    return [1, 2, 3]


def test_total(basket):
    assert total(basket) == 6


@pytest.mark.parametrize(("text", "expected"), [("Hello, World 42", "hello-world-42"), ("A  B c", "a-b-c")])
def test_slug(text, expected):
    assert slug(text) == expected


def test_numbers():
    assert total([1999, 2024]) == 4023
    assert roman(4) == "IV"
    assert roman(1994) == "MCMXCIV"
    assert roman(90) == "XC"
'''
CORE = b'"""Numbers and titles."""\n\n\ndef total(items):\n    raise NotImplementedError\n'
REFERENCE = b'''"""Numbers and titles."""

import re

SIGNS = [(1000, "M"), (500, "D"), (100, "C"), (50, "L"), (10, "X"), (5, "V"), (1, "I")]


def total(items):
    return sum(items)


def slug(text):
    return "-".join(re.findall("[a-z0-9]+", text.lower()))


def roman(number):
    text = ""
    for value, sign in SIGNS:
        while number >= value:
            text, number = text + sign, number - value
    return text.replace("VIIII", "IX").replace("IIII", "IV")
'''
START = {
    "src/shop/__init__.py": b"",
    "src/shop/core.py": CORE,
    "tests/test_core.py": TEST,
    "tests/data/golden.txt": b"golden",
    "pyproject.toml": b"[tool.pytest.ini_options]\naddopts = '-q'\n",
    "README.md": b"# shop\n",
}
TESTS = ["tests/test_core.py::test_total", "tests/test_core.py::test_slug[a]", "tests/test_core.py::test_numbers"]


def shop_task() -> LoadedTask:
    task = Task(
        name="made-up",
        mode="shared",
        instruction="Write total, slug and roman.",
        source_paths=["src/shop"],
        import_roots=["src"],
        tests=TaskTests(fail_to_pass=TESTS, pass_to_pass=[], held_out=["tests/test_more.py::test_more"]),
    )
    suite = SourceTree({"tests/test_core.py": TEST, "tests/test_more.py": b"def test_more(): pass\n"})
    return LoadedTask(task, SourceTree(START), suite, SourceTree({**START, "src/shop/core.py": REFERENCE}))


def submission(
    files: dict[str, str | bytes | None], links: dict[str, str] | None = None, executable: frozenset[str] = frozenset()
) -> Submission:
    """The starting tree with these files changed, added or (None) removed."""
    whole: dict[str, bytes] = dict(START)
    for path, content in files.items():
        if content is None:
            del whole[path]
        else:
            whole[path] = content if isinstance(content, bytes) else content.encode()
    task = shop_task()
    sources = {
        path: content
        for path, content in whole.items()
        if path.startswith("src/shop/") and path.endswith((".py", ".json"))
    }
    return Submission(task, SourceTree(sources), SourceTree(whole, executable), links or {})


def flags_for(source: str, *runs: VerifierRun, path: str = "src/shop/core.py") -> list[Flag]:
    return find_flags(submission({path: source}), runs)


def families(found: list[Flag]) -> set[str]:
    return {flag.rule.split(".")[0] for flag in found}
