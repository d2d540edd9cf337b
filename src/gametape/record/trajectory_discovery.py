"""Finds the trajectories in the directories that the verbs write: attempts, goals, threads, runs, evaluations, homes.

Files are told apart by their first and last bytes, without parsing them. What an agent could have written itself is not
looked at: its workspace, its checkpoints and its notes may hold forged records.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.core.trajectory import Trajectory
from gametape.record.errors import printable_path, read_error
from gametape.record.journal_format import is_journal
from gametape.record.trajectory_file import load_trajectory

SNIFFED_BYTES = 1 << 16
_SUFFIXES = (".json", ".jsonl")
_ATIF = re.compile(rb'"schema_version"\s*:\s*"ATIF')
_ATTEMPT_FILES = {"trajectory.json", "trajectory.jsonl"}
_ATTEMPT_MARKS = _ATTEMPT_FILES | {"goal.json", "thread.json"}
"""A directory with one of these is one attempt: its record lies in it, and nothing below it counts."""
_TASK_MARK = "task.toml"
_NOT_ENTERED = {"workspace", "checkpoints", "repo.git", "vault", "site-packages", "node_modules", "__pycache__"}


@dataclass
class TrajectorySearch:
    """What was found: files that were named, and files in directories that were. `skipped` counts other JSON files in
    the directories; `damaged` says, after `load`, which trajectories in them could not be read, and why."""

    named: list[Path] = field(default_factory=list)
    found: list[Path] = field(default_factory=list)
    skipped: int = 0
    damaged: list[str] = field(default_factory=list)

    @property
    def files(self) -> list[Path]:
        return [*self.named, *self.found]

    def load(self) -> Iterator[tuple[Path, Trajectory]]:
        """Every trajectory with its file. Raises `BadInput` for a named file that is none, and where none is left."""
        loaded = 0
        for file in self.named:
            yield file, load_trajectory(file)
            loaded += 1
        for file in self.found:
            try:
                trajectory = load_trajectory(file)
            except BadInput as error:
                self.damaged.append(str(error))
                continue
            yield file, trajectory
            loaded += 1
        if not loaded and self.damaged:
            raise BadInput(self.damaged[0])


def find_trajectories(paths: Iterable[Path]) -> TrajectorySearch:
    """The trajectories among files and below directories, each once. Raises `BadInput` if there is none."""
    search = TrajectorySearch()
    seen: set[tuple[int, int]] = set()
    directories = []
    for path in paths:
        if not is_directory(path):
            if _is_new(path, seen):
                search.named.append(path)
            continue
        directories.append(path)
        files, skipped = select_files(path, _SUFFIXES, is_trajectory_file)
        search.found += [file for file in files if _is_new(file, seen)]
        search.skipped += skipped
    if not search.files:
        where = ", ".join(map(printable_path, directories[:3]))
        raise BadInput(f"{where}: no trajectory in it (looked for ATIF .json files and .jsonl journals)")
    return search


def select_files(
    directory: Path, suffixes: tuple[str, ...], is_wanted: Callable[[Path], bool]
) -> tuple[list[Path], int]:
    """The wanted files below a directory, sorted, and how many others have one of the suffixes. Of a closed record and
    its journal only the closed one is taken."""
    wanted: list[Path] = []
    skipped = 0
    for file in sorted(walk_records(directory, suffixes)):
        if is_wanted(file):
            wanted.append(file)
        else:
            skipped += 1
    closed = {file.with_suffix("") for file in wanted if file.suffix == ".json" and is_trajectory_file(file)}
    taken = [file for file in wanted if not (file.suffix == ".jsonl" and file.with_suffix("") in closed)]
    return taken, skipped


def walk_records(directory: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Regular files with one of the suffixes that no agent wrote. Links to directories are not followed. Raises
    `BadInput` if the directory itself cannot be read; what cannot be read below it is left out."""
    waiting = [directory]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                inside = list(entries)
        except OSError as error:
            if here == directory:
                raise read_error(directory, error) from None
            continue
        names = {entry.name for entry in inside}
        is_attempt = bool(names & _ATTEMPT_MARKS)
        if _TASK_MARK in names and here != directory:
            continue
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                if not (is_attempt or entry.name in _NOT_ENTERED or entry.name.startswith(".")):
                    waiting.append(here / entry.name)
            elif entry.name.endswith(suffixes) and _is_regular(entry):
                yield here / entry.name


def is_trajectory_file(path: Path) -> bool:
    """Whether a file begins as a journal, or names itself an ATIF document near its beginning or its end."""
    head, tail = sniff(path)
    return is_journal(head) or (
        path.suffix == ".json" and head.lstrip()[:1] == b"{" and bool(_ATIF.search(head) or _ATIF.search(tail))
    )


def sniff(path: Path) -> tuple[bytes, bytes]:
    """The first and the last bytes of a file; nothing where it cannot be read."""
    try:
        if not path.is_file():
            return b"", b""
        with path.open("rb") as file:
            head = file.read(SNIFFED_BYTES)
            if len(head) < SNIFFED_BYTES:
                return head, b""
            file.seek(max(SNIFFED_BYTES, file.seek(0, os.SEEK_END) - SNIFFED_BYTES))
            return head, file.read(SNIFFED_BYTES)
    except OSError:
        return b"", b""


def is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _is_regular(entry: "os.DirEntry[str]") -> bool:
    try:
        return stat.S_ISREG(entry.stat().st_mode)
    except OSError:
        return False


def _is_new(path: Path, seen: set[tuple[int, int]]) -> bool:
    """Whether this is the first name of a file; one that is not there is told of later."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return True
    key = status.st_dev, status.st_ino
    if key in seen:
        return False
    seen.add(key)
    return True
