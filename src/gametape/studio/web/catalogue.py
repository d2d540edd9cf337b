"""Which runs there are, and which file a name in an address means. Nothing outside of the two roots is ever opened.

A run is named by its path below the directory of runs; what is below the home has `home:` before it. Links are not
followed: an agent may have written one into its workspace.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.regular_file import is_regular
from gametape.record.trajectory_discovery import is_trajectory_file
from gametape.studio.run_place import RunKind, RunPlace, find_place

HOME_PREFIX = "home:"
WHOLE = "."
"""The name of the directory of runs itself, where it is a run."""
MOST_RUNS = 1_000
MOST_ROLLOUTS = 100_000
_DEEPEST = 4
_NOT_ENTERED = frozenset({"trajectories", "checkpoints", "start", "workspace", "tasks", "snapshots", "outbox", "vault"})
_OF_A_HOME = ("goals", "threads")
_RUNS: tuple[RunKind, ...] = ("training", "eval", "attempt", "goal", "thread", "trajectory")
_PLAIN = re.compile(r"[^/\0]{1,255}")
_SUFFIXES = (".json", ".jsonl")


class NotThere(BadInput):
    """What an address names is not there, or not any more."""


@dataclass(frozen=True)
class FoundRun:
    name: str
    place: RunPlace


@dataclass(frozen=True)
class RolloutFile:
    name: str
    path: Path
    size: int
    changed: float


@dataclass(frozen=True)
class RunCatalogue:
    """`runs` is the directory of runs, `home` that of goals and threads."""

    runs: Path
    home: Path

    def list(self) -> tuple[list[FoundRun], bool]:
        """Every run, and whether there were more than are listed. Looks at directories only, never into rollouts."""
        found: list[FoundRun] = []
        jobs = (_runs_below(self.home, self.home / name, HOME_PREFIX) for name in _OF_A_HOME)
        for run in chain(_runs_below(self.runs, self.runs, ""), *jobs):
            if len(found) == MOST_RUNS:
                return found, True
            found.append(run)
        return found, False

    def find(self, name: str) -> FoundRun:
        """The run of this name. Raises `NotThere`."""
        root, relative = (
            (self.home, name.removeprefix(HOME_PREFIX)) if name.startswith(HOME_PREFIX) else (self.runs, name)
        )
        if root is self.home and relative.split("/")[0] not in _OF_A_HOME:
            raise NotThere(f"{name}: there is no such run")
        path = root
        for part in [] if relative == WHOLE else relative.split("/"):
            path = path / part
            if not _PLAIN.fullmatch(part) or part in (".", "..") or path.is_symlink():
                raise NotThere(f"{name}: there is no such run")
        if not path.exists():
            raise NotThere(f"{name}: there is no such run; it may have been deleted meanwhile")
        if path.is_file() and not (path.name.endswith(_SUFFIXES) and is_trajectory_file(path)):
            raise NotThere(f"{name}: there is no such run")
        place = find_place(path, self.home)
        if place.kind not in _RUNS:
            raise NotThere(f"{name}: a directory, but no run")
        return FoundRun(name, place)


def rollout_files(place: RunPlace) -> list[RolloutFile]:
    """The records of a run by their names, without opening one; of a closed record and its journal the closed one."""
    if place.trajectory:
        status = place.trajectory.lstat()
        return [RolloutFile(place.trajectory.stem, place.trajectory, status.st_size, status.st_mtime)]
    files: dict[str, RolloutFile] = {}
    for entry in _record_entries(place.path):
        stem, suffix = os.path.splitext(entry.name)
        if suffix not in _SUFFIXES or not entry.is_file(follow_symlinks=False) or len(files) == MOST_ROLLOUTS:
            continue
        if suffix == ".json" or stem not in files:
            status = entry.stat(follow_symlinks=False)
            files[stem] = RolloutFile(stem, Path(entry.path), status.st_size, status.st_mtime)
    return [files[name] for name in sorted(files)]


def find_rollout(run: FoundRun, name: str) -> RolloutFile:
    """The record of this name. Raises `NotThere`."""
    wanted = run.place.trajectory.stem if run.place.trajectory else name
    if _PLAIN.fullmatch(wanted) and (run.place.trajectory is None or name in ("", wanted)):
        directory = run.place.trajectory.parent if run.place.trajectory else run.place.path / "trajectories"
        for suffix in _SUFFIXES:
            path = directory / f"{wanted}{suffix}"
            if is_regular(path) and (run.place.trajectory or not directory.is_symlink()):
                status = path.lstat()
                return RolloutFile(wanted, path, status.st_size, status.st_mtime)
    raise NotThere(f"{run.name}: it has no rollout {name!r}; it may have been deleted meanwhile")


def group_of(rollout: str) -> str:
    """What siblings of a prompt have in common: the name before the number of the rollout."""
    found = re.fullmatch(r"(.+)[.-]\d+", rollout)
    return found[1] if found else rollout


def _runs_below(root: Path, below: Path, prefix: str) -> Iterator[FoundRun]:
    """The runs at or below a directory, named by their paths from `root`."""
    waiting = [(below, 0)]
    while waiting:
        here, depth = waiting.pop()
        try:
            place = find_place(here, root)
        except BadInput:
            continue
        if place.kind in _RUNS:
            relative = here.relative_to(root).as_posix()
            yield FoundRun(prefix + relative, place)
            continue
        for entry in sorted(_entries(here), key=lambda entry: entry.name, reverse=True):
            if entry.is_dir(follow_symlinks=False):
                if depth < _DEEPEST and entry.name not in _NOT_ENTERED and not entry.name.startswith("."):
                    waiting.append((Path(entry.path), depth + 1))
            elif place.kind == "directory" and entry.name.endswith(_SUFFIXES):
                path = Path(entry.path)
                if entry.is_file(follow_symlinks=False) and is_trajectory_file(path):
                    yield FoundRun(prefix + path.relative_to(root).as_posix(), RunPlace("trajectory", path))


def _record_entries(root: Path) -> "list[os.DirEntry[str]]":
    """What is in `trajectories` of a run; nothing where that is a link."""
    directory = root / "trajectories"
    return [] if directory.is_symlink() else _entries(directory)


def _entries(directory: Path) -> "list[os.DirEntry[str]]":
    """What is in a directory; nothing where it cannot be read."""
    try:
        with os.scandir(directory) as entries:
            return [*entries]
    except OSError:
        return []
