"""Hand a task to an agent: its starting tree, and nothing that could give the answer away."""

import sys
from dataclasses import dataclass
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.tasks.fresh import fresh_directory
from gametape.verify.subject import Subject


@dataclass(frozen=True)
class Checkout:
    """A workspace, and what an agent is told about it."""

    workspace: Path
    source_paths: list[str]
    """The only paths of the workspace that are taken from an attempt."""
    instruction: str
    visible_tests: list[str]
    interpreter: Path
    """The Python that runs the tests."""


def checkout(subject: Subject, out: Path, solved: bool) -> Checkout:
    """Write the starting tree, or the solved one, into `out`: a new directory or an empty one.

    A starting tree comes from `environment/workspace` alone, so there is no held-out test, solution or history in it.
    """
    tree = subject.reference if solved else subject.start
    if tree is None:
        raise BadInput(f"{subject.task.name}: has no solution to apply")
    with fresh_directory(out):
        tree.write_to(out)
    return Checkout(
        workspace=out.absolute(),
        source_paths=subject.task.source_paths,
        instruction=subject.task.instruction,
        visible_tests=subject.task.tests.visible,
        interpreter=(subject.interpreter or Path(sys.executable)).absolute(),
    )
