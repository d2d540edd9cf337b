"""What an attempt to forge a verdict is, and how one is planted."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gametape.record.loaded_task import LoadedTask
from tests.redteam.tasks import tasks


@dataclass(frozen=True)
class Attempt:
    """`plant` changes a fresh checkout of the task."""

    name: str
    sentence: str
    task: str
    plant: Callable[[Path], None]
    profile: Literal["train", "full"] = "train"


MADE: dict[str, LoadedTask] = {}
"""Tasks that attempts bring with them."""


@functools.cache
def loaded_task_of(name: str) -> LoadedTask:
    """A task of the repository or one that was made; `name-bare` is the same without held-out tests, `name-replay` with
    verdicts by replay."""
    if name in MADE:
        return MADE[name]
    if name.endswith("-replay"):
        found = loaded_task_of(name.removesuffix("-replay"))
        return replace(found, task=found.task.model_copy(update={"mode": "replay", "split": None}))
    plain = name.removesuffix("-bare")
    loaded_task = tasks(plain)[plain]
    if plain == name:
        return loaded_task
    tests = loaded_task.task.tests.model_copy(update={"held_out": [], "groups": {}})
    return replace(loaded_task, task=loaded_task.task.model_copy(update={"tests": tests, "name": name}))


def plant(attempt: Attempt, workspace: Path) -> None:
    loaded_task_of(attempt.task).start.write_to(workspace)
    attempt.plant(workspace)


def files(**texts: str) -> Callable[[Path], None]:
    """Plant these texts; in the names, `__` stands for `/` and `_dot_` for a dot."""

    def put(workspace: Path) -> None:
        for name, text in texts.items():
            path = workspace / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    return put
