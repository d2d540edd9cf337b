"""A task with its trees in memory, which is what an attempt is verified against."""

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path

from gametape.core.task import Task
from gametape.record.source_tree import SourceTree


@dataclass(frozen=True)
class LoadedTask:
    """A task and its trees. The trees are trusted: they come from the maker of the task."""

    task: Task
    start: SourceTree
    """The agent's starting tree, visible tests included."""
    suite: SourceTree
    """The original tests, held-out ones included, at the paths where they replace the agent's."""
    reference: SourceTree | None = None
    """The starting tree with the reference solution applied."""
    interpreter: Path | None = None
    """The Python that has the task's dependencies; None is gametape's own."""

    @functools.cached_property
    def digest(self) -> str:
        """Identifies the task with everything in it. Pinned dependencies identify the interpreter if there are any: the
        same dependencies elsewhere give the same verdicts."""
        parts = (
            self.task.model_dump_json(),
            self.start.digest,
            self.suite.digest,
            self.reference.digest if self.reference else "",
            "" if self.task.dependencies else str(self.interpreter or ""),
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
