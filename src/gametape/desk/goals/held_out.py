"""Tests that the agent never sees: read when the goal is created, kept with it, and run by the judge alone.

They may lie outside of the workspace, or inside: then the agent's copy of the workspace does not have them, and it gets
no git history, which may show them.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.source_tree import SourceTree, is_under, read_tree
from gametape.sandbox.snapshots.cleanup import remove_tree

_DIRECTORY = "held_out_tests"
"""Where tests from outside are laid in the judged tree."""
_CACHES = ("__pycache__", ".pytest_cache", ".git")


@dataclass(frozen=True)
class HeldOutTests:
    """The tests, at their paths in the judged tree."""

    path: str
    """The file or directory that pytest is given."""
    files: SourceTree
    inside: bool
    """Whether they come from the workspace itself."""

    def without(self, workspace: SourceTree) -> SourceTree:
        """The workspace as the agent gets it."""
        return workspace.without({*workspace.under([self.path])}) if self.inside else workspace

    @property
    def command(self) -> str:
        return f"pytest '{self.path}'"


def read_held_out(given: Path, workspace: Path, start: SourceTree) -> HeldOutTests:
    """Read the tests. Raises `BadInput` where there are none, or where they are the whole workspace."""
    if not given.exists():
        raise BadInput(f"--held-out: no such file or directory: {given}")
    real, root = Path(os.path.realpath(given)), Path(os.path.realpath(workspace))
    if root.is_relative_to(real):
        raise BadInput(f"--held-out: {given} contains the whole workspace")
    inside = real.is_relative_to(root)
    path = real.relative_to(root).as_posix() if inside else _free_name(start)
    if "'" in path:
        raise BadInput("--held-out: its path in the workspace cannot have a quote in it")
    if real.is_file():
        place = path if inside else f"{path}/{real.name}"
        return HeldOutTests(place, SourceTree({place: real.read_bytes()}), inside)
    read = read_tree(real)
    files = {f"{path}/{name}": content for name, content in read.files.items() if not _is_cache(name)}
    if not any(name.endswith(".py") for name in files):
        raise BadInput(f"--held-out: there is no Python file in {given}")
    return HeldOutTests(path, SourceTree(files, frozenset(f"{path}/{name}" for name in read.executable)), inside)


def lay_files(files: SourceTree, workspace: Path) -> None:
    """Write the tests into a workspace that an agent left, in place of what it put there. No link is followed."""
    for path in files:
        target = workspace
        for part in path.split("/"):
            target = target / part
            if target.is_symlink() or (target.exists() and not target.is_dir()):
                target.unlink()
        if target.is_dir():
            remove_tree(target)
    for top in {path.split("/")[0] for path in files if "/" in path}:
        (workspace / top).mkdir(exist_ok=True)
    files.write_to(workspace)


def _free_name(start: SourceTree) -> str:
    names = [_DIRECTORY, *(f"{_DIRECTORY}_{number}" for number in range(2, 100))]
    return next(name for name in names if not any(is_under(path, [name]) for path in start))


def _is_cache(path: str) -> bool:
    return any(part in _CACHES for part in path.split("/"))
