"""The twelve tasks of the repository, in both modes."""

from pathlib import Path

from gametape.record.loaded_task import LoadedTask
from gametape.tasks.loader import load_task

HERE = Path(__file__).resolve().parents[2]
TASK_DIRECTORIES = (HERE / "examples/tasks", HERE / "tests/data/tasks")


def tasks(*names: str) -> dict[str, LoadedTask]:
    """Tasks by name; without names, all of them."""
    found = sorted(path.parent for directory in TASK_DIRECTORIES for path in directory.glob("*/task.toml"))
    return {path.name: load_task(path) for path in found if not names or path.name in names}
