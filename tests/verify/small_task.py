"""A small shared task, made in memory, for tests of the verifier."""

from pathlib import Path

from gametape.core.task import Task, TaskLimits, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree

START = """def add(a, b):
    raise NotImplementedError


def name(n):
    raise NotImplementedError


def twice(n):
    return 2 * n
"""
RIGHT = """def add(a, b):
    return a + b


def name(n):
    if n < 0:
        raise ValueError("negative")
    return {0: "none", 1: "one"}.get(n, "many")


def twice(n):
    return 2 * n
"""
VISIBLE = """import pytest

from calc import add, name, twice


def test_add():
    assert add(2, 3) == 5
    assert add(-1, 1) == 0


def test_name():
    assert name(0) == "none"
    assert name(7) == "many"


def test_negative():
    with pytest.raises(ValueError):
        name(-1)


def test_twice():
    assert twice(4) == 8
"""
HELD_OUT = """from calc import add, name


def test_more():
    assert add(20, 22) == 42


def test_text():
    assert add("a", "b") == "ab"


def test_one():
    assert name(1) == "one"
"""
TESTS = TaskTests(
    fail_to_pass=["tests/test_calc.py::test_add", "tests/test_calc.py::test_name", "tests/test_calc.py::test_negative"],
    pass_to_pass=["tests/test_calc.py::test_twice"],
    held_out=[f"tests/test_more.py::{name}" for name in ("test_more", "test_text", "test_one")],
)


def small_task(seconds: float = 3.0) -> LoadedTask:
    task = Task(
        name="small",
        mode="shared",
        instruction="Write add and name.",
        source_paths=["calc.py"],
        tests=TESTS,
        limits=TaskLimits(verifier_seconds=seconds),
    )
    visible = SourceTree({"tests/test_calc.py": VISIBLE.encode()})
    start = SourceTree({"calc.py": START.encode()}).overlaid_on(visible)
    suite = SourceTree({"tests/test_more.py": HELD_OUT.encode()}).overlaid_on(visible)
    return LoadedTask(task, start, suite, SourceTree({"calc.py": RIGHT.encode()}).overlaid_on(start))


def workspace(directory: Path, source: str) -> Path:
    """A checkout of the small task with this in place of its source."""
    loaded_task = small_task()
    loaded_task.start.write_to(directory)
    (directory / "calc.py").write_text(source)
    return directory
