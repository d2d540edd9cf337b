"""What is verified against: a task with everything it brings, loaded."""

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path

from gametape.core.task import Task
from gametape.record.source_tree import SourceTree


@dataclass(frozen=True)
class LoadedTask:
    """A task and its trees. The trees are trusted: they come from whoever made the task."""

    task: Task
    start: SourceTree
    """The agent's starting tree, visible tests included."""
    suite: SourceTree
    """The pristine tests, held-out ones included, at the paths where they are laid over the sources."""
    reference: SourceTree | None = None
    """The starting tree with the reference solution applied."""
    interpreter: Path | None = None
    """The Python that has the task's dependencies; None is gametape's own."""

    @functools.cached_property
    def digest(self) -> str:
        """Names the task with everything in it. An interpreter is named by what the task pins for it, if it does: the
        same environment elsewhere gives the same verdicts."""
        parts = (
            self.task.model_dump_json(),
            self.start.digest,
            self.suite.digest,
            self.reference.digest if self.reference else "",
            "" if self.task.dependencies else str(self.interpreter or ""),
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
