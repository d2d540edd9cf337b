"""The directory of one attempt: its record, its files and its checkpoints, and how it is locked and reopened.

trajectory.json   the record (trajectory.jsonl while it runs)
workspace/        the files as the agent left them
patch.diff        what it changed
checkpoints/      the file tree after every turn
notes/            what it remembered
network.jsonl     what it asked of the hosts that it was allowed to reach
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.core.trajectory import Trajectory
from gametape.record.errors import write_error
from gametape.record.journal import Journal
from gametape.record.lock import require_lock
from gametape.record.trajectory_file import load_trajectory
from gametape.sandbox.snapshots.cleanup import remove_tree


@dataclass(frozen=True)
class AttemptDirectory:
    root: Path

    @property
    def journal(self) -> Path:
        return self.root / "trajectory.jsonl"

    @property
    def trajectory(self) -> Path:
        """The record, closed or not."""
        return closed if (closed := self.root / "trajectory.json").exists() else self.journal

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def patch(self) -> Path:
        return self.root / "patch.diff"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    @property
    def network(self) -> Path:
        return self.root / "network.jsonl"

    @contextmanager
    def lock(self, resume: bool) -> Iterator[None]:
        """Lock the attempt against other processes; make the directory of a new one. An `OSError` inside becomes a
        one-line error, and what was recorded stays."""
        try:
            if not resume:
                self.root.mkdir(parents=True, exist_ok=True)
            elif not self.trajectory.exists():
                raise BadInput(f"{self.root}: there is no attempt to resume")
            directory = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise BadInput(f"{self.root}: cannot be made: {error.strerror}") from error
        try:
            require_lock(directory, self.root, "another process is at work on this attempt")
            yield
        except OSError as error:
            raise write_error(Path(os.fsdecode(error.filename or self.root)), error) from error
        finally:
            os.close(directory)

    def require_empty(self) -> None:
        """Refuse a directory in which something else is: an attempt never mixes with the files of somebody else."""
        if not self.trajectory.exists() and any(self.root.iterdir()):
            raise BadInput(f"{self.root}: not empty; give --out the name of a new directory")

    def create_journal(self, trajectory: Trajectory) -> Journal:
        """The journal of a new attempt. An attempt that is there is never overwritten."""
        if self.trajectory.exists():
            raise BadInput(f"{self.root}: holds an attempt; continue it with --resume, or give --out a new directory")
        return Journal.create(self.journal, trajectory)

    def load_trajectory(self) -> Trajectory:
        """The record as it is, to read."""
        return load_trajectory(self.trajectory)

    def reopen_journal(self) -> Journal:
        """The journal of an attempt that was killed or interrupted, or that reached a limit."""
        return Journal.open(self.journal) if self.trajectory == self.journal else Journal.reopen(self.journal)

    def replace_workspace(self, write: Callable[[Path], None]) -> None:
        """Replace the workspace by the tree that `write` writes, whole or not at all."""
        fresh, old = self.root / ".workspace.new", self.root / ".workspace.old"
        for leftover in (fresh, old):
            remove_tree(leftover)
        write(fresh)
        if self.workspace.exists():
            self.workspace.rename(old)
        fresh.rename(self.workspace)
        remove_tree(old)
