"""Check out a task for an agent: write its starting tree, without held-out tests, solution or history."""

import sys
from dataclasses import dataclass
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.loaded_task import LoadedTask
from gametape.tasks.atomic_directory import atomic_directory


@dataclass(frozen=True)
class Checkout:
    """A workspace on disk, and its description for the agent."""

    workspace: Path
    source_paths: list[str]
    """The only paths of the workspace that are taken from an attempt."""
    instruction: str
    visible_tests: list[str]
    interpreter: Path
    """The Python that runs the tests."""


def checkout(loaded_task: LoadedTask, out: Path, solved: bool) -> Checkout:
    """Write the starting tree, or the solved one, into `out`: a new directory or an empty one.

    A starting tree comes from `environment/workspace` alone, so there is no held-out test, solution or history in it.
    """
    tree = loaded_task.reference if solved else loaded_task.start
    if tree is None:
        raise BadInput(f"{loaded_task.task.name}: has no solution to apply")
    with atomic_directory(out):
        tree.write_to(out)
    return Checkout(
        workspace=out.absolute(),
        source_paths=loaded_task.task.source_paths,
        instruction=loaded_task.task.instruction,
        visible_tests=loaded_task.task.tests.visible,
        interpreter=(loaded_task.interpreter or Path(sys.executable)).absolute(),
    )
