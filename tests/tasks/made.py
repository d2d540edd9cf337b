"""A task small enough to break in one place."""

from pathlib import Path
from typing import Any

from gametape.core.task import SplitSurface, Stage, Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.tasks.writer import write_task

ROOT = Path(__file__).parents[2]
TASKS = sorted(
    path.parent for place in ("examples/tasks", "tests/data/tasks") for path in ROOT.glob(f"{place}/*/task.toml")
)

VISIBLE = b"from add import add\n\n\ndef test_small():\n    assert add(1, 2) == 3\n"
HIDDEN = b"from add import add\n\n\ndef test_large():\n    assert add(500, 600) == 1100\n"

START = SourceTree(
    {"add.py": b"def add(a, b):\n    raise NotImplementedError\n", "old.py": b"", "tests/test_add.py": VISIBLE}
)
SUITE = SourceTree({"tests/test_add.py": VISIBLE, "tests/test_add_held_out.py": HIDDEN})
REFERENCE = SourceTree({"add.py": b"def add(a, b):\n    return a + b\n", "tests/test_add.py": VISIBLE})

TESTS = TaskTests(
    fail_to_pass=["tests/test_add.py::test_small"],
    pass_to_pass=[],
    held_out=["tests/test_add_held_out.py::test_large"],
)


def subject(**changes: Any) -> LoadedTask:
    """A sound task whose reference changes one file and removes another."""
    task: dict[str, Any] = {
        "name": "made/add",
        "mode": "shared",
        "instruction": "# Add\n\nWrite `add`.\n",
        "source_paths": ["add.py", "old.py"],
        "tests": TESTS,
    }
    return LoadedTask(Task(**{**task, **changes}), START, SUITE, REFERENCE)


def split_subject() -> LoadedTask:
    return subject(mode="split", split=SplitSurface(modules=["add"]))


def staged_subject() -> LoadedTask:
    first = TaskTests(fail_to_pass=TESTS.fail_to_pass, pass_to_pass=[])
    second = TaskTests(fail_to_pass=[], pass_to_pass=TESTS.fail_to_pass, held_out=TESTS.held_out)
    stages = [
        Stage(name="01-small", instruction="Small numbers.\n", tests=first),
        Stage(name="02-large", instruction="Large numbers.\n", tests=second),
    ]
    return subject(stages=stages)


def written(directory: Path, made: LoadedTask | None = None) -> Path:
    return write_task(directory / "task", made or subject())
